"""Checkpoints and targets from names and shapes, or from real tensors, without any file format in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import pytest
import torch
import torchvision

from inspector.architectures.types import ArchitectureSpec, Target, TargetKind, TargetTensor
from inspector.checkpoint.source import BufferSource
from inspector.checkpoint.types import Checkpoint, ModuleNode, Origin, StateDict, StateRole, Storage, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.keys.report import KeyReport

Shapes = dict[str, tuple[int, ...]]


@lru_cache
def _torchvision_shapes(name: str, options: tuple[tuple[str, int], ...]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    with torch.device("meta"):
        model = getattr(torchvision.models, name)(weights=None, **dict(options))
    return tuple((key, tuple(t.shape)) for key, t in model.state_dict().items())


def _state(tensors: tuple[TensorInfo, ...], **more: object) -> StateDict:
    given = {
        "path": (),
        "role": StateRole.WEIGHTS,
        "why": "the file itself",
        "kind": "collections.OrderedDict",
        "tensors": tensors,
        "modules": ModuleNode(name="", path=""),
    }
    return StateDict(**(given | more))


def _checkpoint(tensors: tuple[TensorInfo, ...], states: tuple[StateDict, ...], **more: object) -> Checkpoint:
    given = {
        "origin": Origin(name="net.pth", nbytes=0),
        "format": "torch-zip",
        "format_says": "torch.save zip archive",
        "root": Value(kind=ValueKind.MAPPING, type_name="dict", says=""),
        "tensors": tensors,
        "state_dicts": states,
        "source": BufferSource(b""),
    }
    return Checkpoint(**(given | more))


@pytest.fixture
def shapes() -> Callable[..., Shapes]:
    """shapes("resnet18", num_classes=10): names and shapes of a torchvision model, built on meta."""
    return lambda name, **options: dict(_torchvision_shapes(name, tuple(sorted(options.items()))))


@pytest.fixture
def file_of() -> Callable[[Mapping[str, tuple[int, ...]]], Checkpoint]:
    """A checkpoint that declares these names and shapes and has no bytes."""

    def make(names: Mapping[str, tuple[int, ...]], **more: object) -> Checkpoint:
        tensors = tuple(
            TensorInfo(name=n, path=(n,), shape=s, dtype="float32", nbytes=0, storage_id=None) for n, s in names.items()
        )
        return _checkpoint(tensors, (_state(tensors, **more),))

    return make


@pytest.fixture
def target_of() -> Callable[[Mapping[str, tuple[int, ...]]], Target]:
    """A target that expects these names and shapes; shape None for names alone."""

    def make(names: Mapping[str, tuple[int, ...] | None], **more: object) -> Target:
        tensors = tuple(TargetTensor(name=n, shape=s, dtype="float32") for n, s in names.items())
        return Target(**({"label": "the target", "kind": TargetKind.FILE, "tensors": tensors} | more))

    return make


@pytest.fixture
def architecture() -> Callable[..., Target]:
    """A target that can be built: architecture("resnet18", num_classes=10)."""

    def make(name: str, num_classes: int | None = None, in_channels: int | None = None) -> Target:
        from inspector.architectures.build import build_model

        spec = ArchitectureSpec(library="torchvision", name=name, num_classes=num_classes, in_channels=in_channels)
        state = build_model(spec, device="meta").state_dict()
        tensors = tuple(
            TargetTensor(name=n, shape=tuple(t.shape), dtype=str(t.dtype).removeprefix("torch."))
            for n, t in state.items()
        )
        return Target(label=spec.label, kind=TargetKind.ARCHITECTURE, tensors=tensors, spec=spec)

    return make


def saved_checkpoint(state: Mapping[str, torch.Tensor], **more: object) -> Checkpoint:
    """A checkpoint with the bytes of these tensors; tensors that share memory share it in the file too."""
    blob = bytearray()
    storages: dict[str, Storage] = {}
    tensors = []
    for name, tensor in state.items():
        memory = tensor.untyped_storage()
        key = str(memory.data_ptr())
        if key not in storages:
            raw = torch.empty(0, dtype=torch.uint8).set_(memory).numpy().tobytes()
            storages[key] = Storage(id=key, nbytes=len(raw), present_nbytes=len(raw), offset=len(blob))
            blob += raw
        tensors.append(
            TensorInfo(
                name=name,
                path=(name,),
                shape=tuple(tensor.shape),
                dtype=str(tensor.dtype).removeprefix("torch."),
                nbytes=tensor.numel() * tensor.element_size(),
                storage_id=key,
                offset=tensor.storage_offset(),
                stride=tuple(tensor.stride()),
            )
        )
    metadata = getattr(state, "_metadata", {})
    versions = tuple((path, entry["version"]) for path, entry in metadata.items() if "version" in entry)
    made = _state(tuple(tensors), versions=versions, **more)
    source = BufferSource(bytes(blob), "net.pth")
    return _checkpoint(tuple(tensors), (made,), storages=storages, source=source)


@pytest.fixture
def saved() -> Callable[..., Checkpoint]:
    """`saved_checkpoint`: saved(state, ordered=False)."""
    return saved_checkpoint


@pytest.fixture
def fingerprinted() -> Callable[[torch.nn.Module], dict[str, torch.Tensor]]:
    """The module's state dict with other numbers in every tensor, so that a wrong place is a wrong number."""

    def make(module: torch.nn.Module, seed: int = 0) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(seed)
        state = module.state_dict()
        for number, tensor in enumerate(state.values()):
            if tensor.is_floating_point():
                # Kernels around zero, so that answers stay finite; variances above it.
                low, high = (-0.05, 0.05) if tensor.dim() > 1 else (0.1, 0.9)
                tensor.uniform_(low, high, generator=generator)
            else:
                tensor.fill_(number + 1)
        return state

    return make


def _block(prefix: str, width: int) -> Shapes:
    found: Shapes = {}
    for name, out, into in (("attn.qkv", 3, 1), ("attn.proj", 1, 1), ("mlp.fc1", 2, 1), ("mlp.fc2", 1, 2)):
        found |= {f"{prefix}.{name}.weight": (out * width, into * width), f"{prefix}.{name}.bias": (out * width,)}
    for name in ("norm1", "norm2"):
        found |= {f"{prefix}.{name}.weight": (width,), f"{prefix}.{name}.bias": (width,)}
    return found


@pytest.fixture
def tiny_vit() -> Callable[..., Shapes]:
    """Names and shapes of a vision transformer: tiny_vit(depth=3, width=4)."""

    def make(depth: int = 3, width: int = 4, classes: int = 10) -> Shapes:
        found: Shapes = {"cls_token": (1, 1, width), "pos_embed": (1, 5, width)}
        found |= {"patch_embed.proj.weight": (width, 3, 2, 2), "patch_embed.proj.bias": (width,)}
        for i in range(depth):
            found |= _block(f"blocks.{i}", width)
        found |= {"norm.weight": (width,), "norm.bias": (width,)}
        return found | {"head.weight": (classes, width), "head.bias": (classes,)}

    return make


@pytest.fixture
def tiny_cnn() -> Shapes:
    """Names and shapes of two convolutions with batch norms and a head."""
    found: Shapes = {}
    for i, (out, into) in enumerate(((8, 3), (16, 8)), 1):
        found |= {f"conv{i}.weight": (out, into, 3, 3)}
        found |= {f"bn{i}.{leaf}": (out,) for leaf in ("weight", "bias", "running_mean", "running_var")}
        found |= {f"bn{i}.num_batches_tracked": ()}
    return found | {"fc.weight": (10, 16), "fc.bias": (10,)}


@pytest.fixture
def placed_as() -> Callable[..., dict[str, str]]:
    """{name in the target: name in the file} of everything a report's plan places, for comparing with the truth."""

    def read(report: KeyReport) -> dict[str, str]:
        assert report.plan is not None, report.refusal
        return {s.target: s.source for s in report.plan.steps if s.source is not None and s.target is not None}

    return read
