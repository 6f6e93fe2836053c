"""Layers and tensors that hang in plain attributes, so that neither state_dict nor load_state_dict knows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from inspector.doctor.own_layers import (
    is_computed,
    is_own_class,
    named_plain_tensors,
    plain_containers,
    plain_tensor_found,
)
from inspector.findings import Finding

_MOST_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Unregistered:
    """names: what their tensors would be called were they registered ("blocks.0.weight"). finding: the doctor's."""

    names: tuple[str, ...]
    finding: Finding


def unregistered(model: nn.Module) -> Iterator[Unregistered]:
    """Containers of layers in any class; bare tensors in classes of the person alone, where a library keeps its own."""
    for one in plain_containers(model):
        yield Unregistered(tuple(_names(one.place, one.value)), one.found())
    modules = dict(model.named_modules())
    known = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    for place, tensor in named_plain_tensors(model):
        path, _, name = place.rpartition(".")
        module = modules[path]
        wanted = tensor.is_floating_point() and id(tensor) not in known and is_own_class(module)
        if wanted and not is_computed(module, name):
            yield Unregistered((place,), plain_tensor_found(place, module, tensor))


def _names(place: str, value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, nn.Module):
        yield from (f"{place}.{name}" for name in value.state_dict())
    elif isinstance(value, Tensor):
        yield place
    elif depth < _MOST_DEPTH:
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple | set) else ()  # fmt: skip  # noqa: E501
        for key, part in pairs:
            yield from _names(f"{place}.{key}", part, depth + 1)
