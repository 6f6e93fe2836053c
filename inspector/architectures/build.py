"""From an `ArchitectureSpec` to an nn.Module, without downloads and without waiting for random initial weights.

On "meta" a model costs milliseconds and no memory. On "cpu" every parameter is zero until somebody loads it: the
random initialisation, which takes seconds for large models and is thrown away by the load, is skipped. Callers load
every tensor (a strict load); nothing is ever left as uninitialised memory.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from inspector.architectures.build_timm import arguments_of, find_builder
from inspector.architectures.families import find_family
from inspector.architectures.families.building import builder_of, family_arguments
from inspector.architectures.suggest import suggest
from inspector.architectures.types import ArchitectureSpec
from inspector.errors import BrokenInstall, UnknownArchitecture, UsageError

# What a spec may say beyond class count and input channels. The first group are arguments of torchvision's builders.
BUILDER_OPTIONS = ("aux_logits", "aux_loss", "image_size", "quantize", "transform_input")
# These two torchvision itself sets only for its trained detectors: normalisation layers without their counters, and
# the epsilon with which the first generation of those detectors was trained.
AFTER_OPTIONS = ("frozen_epsilon", "frozen_norm")
OPTIONS = tuple(sorted(BUILDER_OPTIONS + AFTER_OPTIONS))

RGB_MEAN = (0.485, 0.456, 0.406)
RGB_STD = (0.229, 0.224, 0.225)

Mapping = dict[str, Any]


@lru_cache(maxsize=1)
def check_install() -> None:
    """Raise BrokenInstall when torchvision is absent or was compiled for another torch."""
    try:
        import torchvision
        from torchvision.ops import nms

        nms(torch.zeros(0, 4), torch.zeros(0), 0.5)
    except ImportError as error:
        raise BrokenInstall(
            f"torchvision cannot be imported beside torch {torch.__version__}: {error}.",
            hint="Install torchvision in the version that its table names for this torch.",
        ) from error
    except (RuntimeError, AttributeError) as error:
        raise BrokenInstall(
            f"The installed torchvision does not fit torch {torch.__version__}: its own operators do not load "
            f"({str(error).splitlines()[0]}).",
            hint="Install torch and torchvision together, in versions released for each other.",
        ) from error
    del torchvision


def builder_names() -> tuple[str, ...]:
    """Every builder that the installed torchvision lists."""
    check_install()
    from torchvision.models import list_models

    return tuple(list_models())


def build_model(spec: ArchitectureSpec, *, device: str = "cpu") -> nn.Module:
    """The model in eval mode, on "meta" (shapes only) or "cpu" (every parameter zero: load all of them).

    Raises UnknownArchitecture for a builder that the installed library lacks, UsageError for settings it refuses,
    MissingLibrary for timm's models without timm, BrokenInstall when torchvision does not work at all.
    """
    if device not in ("cpu", "meta"):
        raise UsageError(f'A model is built on "cpu" or "meta", not on "{device}".')
    check_install()
    family = find_family(spec.library, spec.name)
    if family is not None:
        return _construct(spec, builder_of(family), family_arguments(family, spec), device).eval()
    if spec.library == "timm":
        return _construct(spec, find_builder(spec), arguments_of(spec), device).eval()
    builder = _find_builder(spec)
    model = _construct(spec, builder, _arguments(spec, builder), device)
    options = dict(spec.options)
    if options.get("frozen_norm"):
        epsilon = options.get("frozen_epsilon")
        _freeze_norms(model, epsilon if isinstance(epsilon, float) else 1e-5)
    if spec.in_channels is not None:
        _change_input(model, spec.in_channels)
    return model.eval()


def takes(name: str, option: str) -> bool:
    """Whether this builder has that setting. Builders that swallow unknown arguments would not complain."""
    from torchvision.models import get_model_builder

    if option == "image_size":
        return name.startswith("vit_")
    if option in ("aux_logits", "transform_input"):
        return name.removeprefix("quantized_") in ("googlenet", "inception_v3")
    return option in inspect.signature(get_model_builder(name)).parameters


def first_convolutions(model: nn.Module) -> tuple[str, ...]:
    """Paths of the convolutions that see the picture: dense ones over three channels, in module order.

    By shape, not by tracing: no torchvision model has a dense convolution over three channels further in, and the
    index builder checks that every one found stands where the input arrives. When the input has another channel
    count, pass the model as it was built, before `in_channels` was changed.
    """
    return tuple(
        path
        for path, module in model.named_modules()
        if isinstance(module, (nn.Conv2d, nn.Conv3d)) and module.in_channels == 3 and module.groups == 1
    )


def _construct(spec: ArchitectureSpec, builder: Callable[..., nn.Module], arguments: Mapping, device: str) -> nn.Module:
    with warnings.catch_warnings():
        # Builders announce changes of their random initial weights, which are not used here.
        warnings.simplefilter("ignore")
        try:
            if arguments.get("quantize"):
                # Quantisation packs real numbers: it runs neither on meta nor with the fills skipped.
                return builder(**arguments)
            if device == "cpu":
                with _ZeroWeights():
                    return builder(**arguments)
            try:
                with torch.device("meta"):
                    return builder(**arguments)
            except NotImplementedError:
                # RegNets compute their widths with tensors, which have no values on meta: only factories of
                # parameters go there then.
                with _MetaParameters():
                    return builder(**arguments).to("meta")
        except (TypeError, ValueError, AssertionError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and spec.library == "torchvision":
                raise
            raise UsageError(f"{spec.label} cannot be built: {str(error).rstrip('.')}.") from error


def _find_builder(spec: ArchitectureSpec) -> Callable[..., nn.Module]:
    if spec.library != "torchvision":
        raise UnknownArchitecture(
            f'Models of "{spec.library}" cannot be built here.',
            hint="Write torchvision/NAME or timm/NAME, for example torchvision/resnet18.",
        )
    from torchvision.models import get_model_builder

    names = builder_names()
    if spec.name not in names:
        raise UnknownArchitecture(
            f'The installed torchvision has no architecture "{spec.name}".', hint=suggest(spec.name, names)
        )
    found: Callable[..., nn.Module] = get_model_builder(spec.name)
    return found


def _arguments(spec: ArchitectureSpec, builder: Callable[..., nn.Module]) -> Mapping:
    accepted = inspect.signature(builder).parameters
    arguments: Mapping = {"weights": None}
    if "weights_backbone" in accepted:
        arguments["weights_backbone"] = None
    if spec.num_classes is not None:
        arguments["num_classes"] = spec.num_classes
    for name, value in spec.options:
        if name not in OPTIONS:
            raise UsageError(f'"{name}" is no setting of an architecture.', hint=suggest(name, OPTIONS))
        if name in BUILDER_OPTIONS:
            if not takes(spec.name, name):
                raise UsageError(f'{spec.name} has no setting "{name}".')
            arguments[name] = value
    if spec.name.removeprefix("quantized_") in ("googlenet", "inception_v3"):
        arguments.setdefault("init_weights", False)
    return arguments


def _freeze_norms(model: nn.Module, epsilon: float) -> None:
    """Replace BatchNorm2d in the backbone by torchvision's frozen kind, as its trained detectors are built."""
    from torchvision.ops import FrozenBatchNorm2d

    backbone = model.get_submodule("backbone")
    for path, module in list(backbone.named_modules()):
        if isinstance(module, nn.BatchNorm2d):
            frozen = FrozenBatchNorm2d(module.num_features, eps=epsilon).to(module.weight.device)
            _replace(backbone, path, frozen)


def _change_input(model: nn.Module, in_channels: int) -> None:
    """Give every first convolution `in_channels` input channels; the detectors' normalisation follows."""
    for path in first_convolutions(model):
        old = model.get_submodule(path)
        assert isinstance(old, (nn.Conv2d, nn.Conv3d))
        if old.in_channels == in_channels:
            continue
        weight = old.weight
        old.in_channels = in_channels
        old.weight = nn.Parameter(weight.new_zeros((weight.shape[0], in_channels, *weight.shape[2:])))
    transform: Any = getattr(model, "transform", None)
    if transform is not None and hasattr(transform, "image_mean") and in_channels != len(transform.image_mean):
        transform.image_mean = list(spread(transform.image_mean, in_channels))
        transform.image_std = list(spread(transform.image_std, in_channels))
    if in_channels != 3 and getattr(model, "transform_input", False):
        # GoogLeNet and Inception v3 rescale the three colour channels one by one.
        model.transform_input = False  # type: ignore[assignment]


def spread(values: Sequence[float], channels: int) -> tuple[float, ...]:
    """Per-channel constants for another channel count: their mean, repeated. Unchanged when the count fits."""
    if len(values) == channels:
        return tuple(values)
    return (sum(values) / len(values),) * channels


def _replace(root: nn.Module, path: str, module: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(root.get_submodule(parent), name, module)


def _zeros_like(shape_only: torch.Tensor) -> torch.Tensor:
    """Zeros of a meta tensor's shape and type in fresh pages of the system, which cost nothing until touched.

    numpy's zeros come from calloc; torch.zeros writes every byte (6 s for vit_h_14). Aligned to 64 bytes like torch's.
    """
    nbytes = shape_only.numel() * shape_only.element_size()
    block = np.zeros(nbytes + 64, dtype=np.uint8)
    start = -block.ctypes.data % 64
    return torch.from_numpy(block[start : start + nbytes]).view(shape_only.dtype).view(shape_only.shape)


class _MetaParameters(TorchFunctionMode):
    """Inside, torch.empty allocates on meta and everything else stays real. Per thread, unlike a patch."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.empty:
            kwargs["device"] = "meta"
        return func(*args, **kwargs)


class _ZeroWeights(TorchFunctionMode):
    """Inside, torch.empty gives zeros, nearly free, and random fills do nothing.

    The in-place arithmetic of truncated normals is skipped on parameters alone: builders compute with other tensors.
    """

    # torch.nn.init's own functions come here by keyword; what they call inside does not come here again.
    _initialisers = frozenset({nn.init.uniform_, nn.init.normal_, nn.init.kaiming_uniform_, nn.init.kaiming_normal_})
    _fills = frozenset({torch.Tensor.normal_, torch.Tensor.uniform_, torch.Tensor.random_, torch.Tensor.bernoulli_})
    _arithmetic = frozenset(
        {torch.Tensor.erfinv_, torch.Tensor.mul_, torch.Tensor.add_, torch.Tensor.clamp_, torch.Tensor.zero_}
    )

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping | None = None
    ) -> Any:
        if func is torch.empty:
            return _zeros_like(func(*args, **{**(kwargs or {}), "device": "meta"}))
        if func in self._initialisers:
            return (kwargs or {}).get("tensor", args[0] if args else None)
        if args and (func in self._fills or (func in self._arithmetic and isinstance(args[0], nn.Parameter))):
            return args[0]
        return func(*args, **(kwargs or {}))
