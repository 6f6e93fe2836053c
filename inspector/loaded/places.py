"""The model's side: every parameter and persistent buffer, by the name that a state dict gives it.

`model.state_dict` is not asked: it may be what was overwritten.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from inspector.architectures.types import Target, TargetKind, TargetTensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """tensor: the model's own, not a copy. module: the one that holds it."""

    name: str
    leaf: str
    tensor: Tensor
    module: nn.Module
    is_buffer: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes; () for a scalar, and for a lazy parameter, which has none yet."""
        return () if self.is_lazy else tuple(self.tensor.shape)

    @property
    def is_lazy(self) -> bool:
        """Whether it gets its shape in the first forward pass."""
        return bool(is_lazy(self.tensor))

    @property
    def dtype(self) -> str:
        """torch's name without "torch."."""
        return str(self.tensor.dtype).removeprefix("torch.")

    @property
    def path(self) -> str:
        """Of the module."""
        return self.name.rpartition(".")[0]


def places_of(model: nn.Module) -> tuple[Place, ...]:
    """In the model's order, each under all of its names, as `nn.Module.state_dict` lists them."""
    return tuple(_walk(model))


def _walk(model: nn.Module) -> Iterator[Place]:
    for path, module in model.named_modules(remove_duplicate=False):
        before = f"{path}." if path else ""
        hidden: set[str] = getattr(module, "_non_persistent_buffers_set", set())
        for held, is_buffer in ((module._parameters, False), (module._buffers, True)):
            for leaf, tensor in held.items():
                if tensor is not None and leaf not in hidden:
                    yield Place(name=f"{before}{leaf}", leaf=leaf, tensor=tensor, module=module, is_buffer=is_buffer)


def ties_of(places: tuple[Place, ...]) -> tuple[tuple[str, ...], ...]:
    """Names of one parameter or buffer object, or of one memory seen whole under several names."""
    views: dict[tuple[object, ...], list[str]] = {}
    for place in (one for one in places if not one.is_lazy):
        tensor = place.tensor
        meta = tensor.is_meta or not tensor.numel()
        view: tuple[object, ...] = (id(tensor),) if meta else (tensor.data_ptr(), tensor.shape, tensor.stride())
        views.setdefault((*view, tensor.dtype), []).append(place.name)
    return tuple(tuple(names) for names in views.values() if len(names) > 1)


def target_of_model(model: nn.Module, places: tuple[Place, ...]) -> Target:
    """What the repair engine compares a file with."""
    return Target(
        label=type(model).__name__,
        kind=TargetKind.CODE,
        tensors=tuple(
            TargetTensor(name=place.name, shape=place.shape, dtype=place.dtype, is_buffer=place.is_buffer)
            for place in places
            if not place.is_lazy
        ),
        ties=ties_of(places),
    )
