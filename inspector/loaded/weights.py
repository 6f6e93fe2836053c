"""The file's side: a checkpoint's tensors, or those of a mapping in memory, one at a time as torch's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.nested import NamedTensors, find_state_dicts
from inspector.checkpoint.source import BufferSource
from inspector.checkpoint.torch_bridge import rebuild_tensor
from inspector.checkpoint.types import Checkpoint, Origin, StateDict, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.errors import UsageError
from inspector.readers import open_checkpoint

_MOST_DEPTH = 6
Source = str | Path | Checkpoint | Mapping[str, Any] | nn.Module


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """checkpoint: names and shapes. held: the tensors by path where they are in memory already, else None."""

    checkpoint: Checkpoint
    held: Mapping[tuple[str, ...], Tensor] | None = None

    def stored(self, tensor: TensorInfo) -> Tensor:
        """Its numbers. Raises ReadError where it has none that can be read."""
        if self.held is not None:
            return self.held[tensor.path].detach()
        return rebuild_tensor(self.checkpoint, tensor)


def weights_of(source: Source) -> Weights:
    """A file or folder (opened here, nothing in it run), an opened checkpoint, a state dict, what torch.load gave.

    Raises ReadError for what is no checkpoint, UsageError for a mapping without tensors.
    """
    if isinstance(source, Checkpoint):
        return Weights(checkpoint=source)
    if isinstance(source, nn.Module):
        held = {name: tensor.detach() for name, tensor in source.state_dict().items() if isinstance(tensor, Tensor)}
        return _in_memory(held, type(source).__name__)
    if isinstance(source, Mapping):
        return _in_memory(source, "the state dict")
    return Weights(checkpoint=open_checkpoint(source))


def _in_memory(mapping: Mapping[str, Any], name: str) -> Weights:
    held: dict[tuple[str, ...], Tensor] = {}
    groups: list[NamedTensors] = []
    optimizers: list[tuple[str, ...]] = []
    _collect(mapping, (), held, groups, optimizers)
    if not held:
        raise UsageError("There is no tensor in this mapping.", hint="Give a state dict, or what torch.load returned.")
    infos = tuple(_info(path, tensor) for path, tensor in held.items())
    checkpoint = Checkpoint(
        origin=Origin(name=name, nbytes=sum(t.nbytes for t in infos)),
        format="torch-zip",
        format_says="a mapping in memory",
        root=Value(kind=ValueKind.MAPPING, type_name="dict", says=f"{len(mapping):,} entries"),
        tensors=infos,
        state_dicts=find_state_dicts(groups, optimizers=optimizers, tensors=infos),
        source=BufferSource(b""),
    )
    return Weights(checkpoint=checkpoint, held=held)


def _collect(
    mapping: Mapping[Any, Any],
    path: tuple[str, ...],
    held: dict[tuple[str, ...], Tensor],
    groups: list[NamedTensors],
    optimizers: list[tuple[str, ...]],
) -> None:
    if "state" in mapping and "param_groups" in mapping:
        optimizers.append(path)
    own: list[TensorInfo] = []
    others: list[str] = []
    for key, value in mapping.items():
        here = (*path, str(key))
        if isinstance(value, Tensor):
            held[here] = value
            if isinstance(key, str):
                own.append(_info(here, value))
        elif isinstance(value, nn.Module):
            _collect(value.state_dict(), here, held, groups, optimizers)
        elif isinstance(value, Mapping) and len(path) < _MOST_DEPTH:
            _collect(value, here, held, groups, optimizers)
        elif isinstance(key, str):
            others.append(key)
    if own:
        groups.append(NamedTensors(path=path, kind=type(mapping).__name__, tensors=tuple(own), others=tuple(others)))


def _info(path: tuple[str, ...], tensor: Tensor) -> TensorInfo:
    dtype = str(tensor.dtype).removeprefix("torch.")
    strided = str(tensor.layout) == "torch.strided"
    return TensorInfo(
        name=path[-1],
        path=path,
        shape=tuple(tensor.shape),
        dtype=dtype if find_dtype(dtype) is not None else "uint8",
        nbytes=tensor.numel() * tensor.element_size(),
        storage_id=f"{tensor.untyped_storage().data_ptr()}" if strided and not tensor.is_meta else None,
        offset=int(tensor.storage_offset()) if strided else 0,
        stride=tuple(tensor.stride()) if strided else None,
        device=str(tensor.device),
        layout=str(tensor.layout).removeprefix("torch."),
    )


def state_named(checkpoint: Checkpoint, label: str) -> StateDict:
    """The state dict that is called so ("ema", "model / ema"). Raises UsageError with the labels that there are."""
    found = [state for state in checkpoint.state_dicts if state.label == label or state.path == (label,)]
    if not found:
        there = ", ".join(f'"{state.label}"' for state in checkpoint.state_dicts) or "none"
        raise UsageError(f'{checkpoint.origin.name} has no state dict "{label}".', hint=f"There are: {there}.")
    return found[0]
