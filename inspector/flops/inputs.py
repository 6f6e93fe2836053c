"""What does a model in hand take? The first of the usual sizes that its layers take and that runs without values.

Nothing here is certain, so what was tried is said with the answer: a network that pools at its end runs with any size.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping

import torch
from torch import nn

from inspector.architectures.types import Given
from inspector.errors import InspectorError, ModelError, NeedsValues
from inspector.flops.blank import to_meta
from inspector.flops.refusals import explained
from inspector.forward.watch import ForwardError, Listener, watch
from inspector.units import human_shape

_SIDES = (224, 32, 28, 64, 96, 128, 227, 256, 299, 384, 512, 48, 160, 112, 84, 16)
_LENGTHS = (128, 1024, 16_000, 100, 187, 512, 784, 3000)
_TOKENS = 128
_SAYS = (
    "Say what the model takes: --input-size 3x224x224, 128 for so many numbers or tokens, or --input NAME=SHAPE:DTYPE."
)
_MASKS = ("attention_mask", "token_type_ids")


def find_inputs(model: nn.Module, *, label: str, batch: int = 1) -> tuple[tuple[Given, ...], str]:
    """(inputs with their batch dimension, what they rest on).

    Raises ModelError where nothing tells, with the names of the arguments, and where no size that was tried runs: with
    the error of the first.
    """
    needed = _required(model)
    blank = to_meta(model, label=label)
    first_error: InspectorError | None = None
    tried: list[str] = []
    for given, why in _candidates(model, batch):
        inputs = [given]
        for name in needed[1:]:
            if name not in _MASKS or given.dtype != "int64":
                raise ModelError(
                    f"{label} takes several inputs ({', '.join(needed)}), and nothing tells what they are.", hint=_SAYS
                )
            inputs.append(Given(name=name, shape=given.shape, dtype="int64", below=2))
        error = _fails(blank, inputs, label)
        if error is None or isinstance(error, NeedsValues):
            before = f"; {', '.join(tried[:4])} {'do' if len(tried) > 1 else 'does'} not run" if tried else ""
            return tuple(inputs), f"{why}{before}; --input-size says otherwise"
        first_error = first_error or error
        tried.append(human_shape(given.shape[1:]))
    if first_error is not None:
        raise ModelError(
            f"None of the usual sizes runs in {label} ({', '.join(tried[:6])}). With the first: {first_error.says}",
            hint=_SAYS,
        )
    raise ModelError(f"Nothing tells what {label} takes.", hint=_SAYS)


def stated_input(model: nn.Module, shape: tuple[int, ...]) -> Given:
    """The one input of a shape that somebody states; one number where an embedding comes first is so many tokens."""
    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear, nn.Embedding)
    first = next((m for m in model.modules() if isinstance(m, kinds)), None)
    if isinstance(first, nn.Embedding) and len(shape) == 2:
        return Given(name="", shape=shape, dtype="int64", below=first.num_embeddings)
    return Given(name="", shape=shape, dtype=weights_dtype(model))


def weights_dtype(model: nn.Module) -> str:
    """Of its first weights in floating point; float32 where there are none."""
    first = next((p for p in model.parameters() if p.is_floating_point()), None)
    return "float32" if first is None else str(first.dtype).removeprefix("torch.")


def blank_of(given: Given) -> torch.Tensor:
    """A tensor of that shape and type on the meta device."""
    return torch.empty(given.shape, dtype=getattr(torch, given.dtype), device="meta")


def filled(given: Given, generator: torch.Generator) -> torch.Tensor:
    """Random numbers of that shape and type: normal, or whole ones from 0 to below its bound."""
    dtype = getattr(torch, given.dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(given.shape, dtype=dtype, generator=generator)
    return torch.randint(0, max(1, given.below or 2), given.shape, generator=generator).to(dtype)


def by_place(
    given: list[torch.Tensor], inputs: tuple[Given, ...]
) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """(arguments in order, arguments by name)."""
    pairs = list(zip(given, inputs, strict=True))
    return [t for t, one in pairs if not one.name], {one.name: t for t, one in pairs if one.name}


def _fails(blank: nn.Module, inputs: list[Given], label: str) -> InspectorError | None:
    args, kwargs = by_place([blank_of(given) for given in inputs], tuple(inputs))
    try:
        watch(blank, args, kwargs, Listener())
    except ForwardError as failed:
        return explained(label, inputs[0].shape, failed)
    return None


def _required(model: nn.Module) -> list[str]:
    """Names of what forward cannot do without, in order."""
    try:
        parameters: Mapping[str, inspect.Parameter] = inspect.signature(model.forward).parameters
    except (TypeError, ValueError):
        return [""]
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [n for n, p in parameters.items() if p.kind in places and p.default is inspect.Parameter.empty] or [""]


def _candidates(model: nn.Module, batch: int) -> Iterator[tuple[Given, str]]:
    """Inputs to try, the likeliest first: by the layers that a tensor can come into, in their order."""
    seen: set[type] = set()
    for path, module in model.named_modules():
        kind = next((k for k in _ENTRANCES if isinstance(module, k)), None)
        if kind is None or kind in seen:
            continue
        seen.add(kind)
        for shape, dtype, below in _ENTRANCES[kind](module, model):
            why = f"assumed from its first layer that takes one: {path or 'the model itself'} ({kind.__name__})"
            kept = weights_dtype(model) if dtype == "float32" else dtype
            yield Given(name="", shape=(batch, *shape), dtype=kept, below=below), why
        if len(seen) == 3:
            return


Entrance = Iterator[tuple[tuple[int, ...], str, int]]


def _pictures(module: nn.Module, model: nn.Module) -> Entrance:
    assert isinstance(module, nn.Conv2d)
    sides: tuple[int, ...] = _SIDES
    kernel = module.kernel_size[0]
    if isinstance(kernel, int) and tuple(module.stride) == tuple(module.kernel_size) and kernel > 1:
        for name, parameter in model.named_parameters():
            # Patches, and a table of positions that tells how many.
            if "pos" in name and parameter.dim() in (2, 3):
                rows = int(parameter.shape[-2])
                found = [
                    math.isqrt(n) * kernel for n in (rows, rows - 1, rows - 2) if n > 0 and math.isqrt(n) ** 2 == n
                ]
                sides = tuple(dict.fromkeys((*found, *sides)))
                break
    yield from (((module.in_channels, side, side), "float32", 0) for side in sides)


def _sequences(module: nn.Module, model: nn.Module) -> Entrance:
    assert isinstance(module, nn.Conv1d)
    yield from (((module.in_channels, length), "float32", 0) for length in _LENGTHS)


def _clips(module: nn.Module, model: nn.Module) -> Entrance:
    assert isinstance(module, nn.Conv3d)
    yield from (((module.in_channels, *size), "float32", 0) for size in ((16, 112, 112), (32, 224, 224), (32, 32, 32)))


def _vectors(module: nn.Module, model: nn.Module) -> Entrance:
    assert isinstance(module, nn.Linear)
    yield (module.in_features,), "float32", 0
    yield (_TOKENS, module.in_features), "float32", 0
    side = math.isqrt(module.in_features)
    if side * side == module.in_features:
        # A picture that the model flattens by itself.
        yield (1, side, side), "float32", 0
    side = math.isqrt(module.in_features // 3)
    if 3 * side * side == module.in_features:
        yield (3, side, side), "float32", 0


def _ids(module: nn.Module, model: nn.Module) -> Entrance:
    assert isinstance(module, nn.Embedding)
    rows = [m.num_embeddings for m in model.modules() if isinstance(m, nn.Embedding)]
    tables = [int(p.shape[-2]) for n, p in model.named_parameters() if "pos" in n and p.dim() in (2, 3)]
    length = min([_TOKENS, *rows[1:], *tables])
    yield (length,), "int64", module.num_embeddings
    yield (), "int64", module.num_embeddings


def _steps(module: nn.Module, model: nn.Module) -> Entrance:
    assert isinstance(module, nn.RNNBase)
    yield (_TOKENS, module.input_size), "float32", 0


def _heads(module: nn.Module, model: nn.Module) -> Entrance:
    assert isinstance(module, nn.MultiheadAttention)
    yield (_TOKENS, module.embed_dim), "float32", 0


_ENTRANCES = {
    nn.Conv2d: _pictures,
    nn.Conv1d: _sequences,
    nn.Conv3d: _clips,
    nn.Embedding: _ids,
    nn.RNNBase: _steps,
    nn.MultiheadAttention: _heads,
    nn.Linear: _vectors,
}
