"""Which state dict of the file is asked about, and which of its names belongs to which place of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.types import StateDict, TensorInfo
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS
from inspector.errors import ReadError, UsageError
from inspector.loaded.equal import cast_between, plain
from inspector.loaded.places import Place
from inspector.loaded.weights import Weights, state_named

Rename = Mapping[str, str] | Callable[[str], str | None]
_PROBES = 12


def bare(name: str) -> str:
    """The name without the segments that wrappers put into it."""
    return ".".join(part for part in name.split(".") if part not in WRAPPER_SEGMENTS)


def own_tensors(places: Sequence[Place], state: StateDict, rename: Rename | None) -> dict[str, TensorInfo]:
    """place name -> the file's tensor of that name: as the script renames, else exactly, else but for wrappers.

    Raises UsageError where the script's renaming makes two names one.
    """
    names = {place.name for place in places}
    if rename is not None:
        found: dict[str, TensorInfo] = {}
        for tensor in state.tensors:
            new = rename.get(tensor.name, tensor.name) if isinstance(rename, Mapping) else rename(tensor.name)
            if new is None or new not in names:
                continue
            if new in found:
                raise UsageError(f"rename makes {new} of both {found[new].name} and {tensor.name}.")
            found[new] = tensor
        return found
    exact = {tensor.name: tensor for tensor in state.tensors if tensor.name in names}
    stripped: dict[str, TensorInfo | None] = {}
    for tensor in state.tensors:
        short = bare(tensor.name)
        stripped[short] = None if short in stripped else tensor
    shorts = [bare(place.name) for place in places]
    for place, short in zip(places, shorts, strict=True):
        other = stripped.get(short)
        if place.name not in exact and other is not None and other.name not in names and shorts.count(short) == 1:
            exact[place.name] = other
    return exact


def choose_state(
    weights: Weights, places: Sequence[Place], label: str, rename: Rename | None
) -> tuple[StateDict, dict[str, TensorInfo]]:
    """The one that was asked for; else that of which the model holds most, by a few tensors; else the likeliest.

    Raises UsageError for an unknown label and for a file without state dicts.
    """
    if label:
        state = state_named(weights.checkpoint, label)
        return state, own_tensors(places, state, rename)
    sets = weights.checkpoint.weight_sets
    if not sets:
        raise UsageError(f"{weights.checkpoint.origin.name} holds no state dict to compare with.")
    by_name = {place.name: place for place in places}
    best: tuple[int, int, int] = (-1, -1, -1)
    chosen: tuple[StateDict, dict[str, TensorInfo]] | None = None
    for number, state in enumerate(sets):
        own = own_tensors(places, state, rename)
        probes = [(by_name[name], tensor) for name, tensor in own.items() if not is_bookkeeping(name)]
        probes = probes[:: max(1, len(probes) // _PROBES)] if len(sets) > 1 else []
        rank = (sum(_is_held(weights, *probe) for probe in probes), min(len(own), 1), -number)
        if rank > best:
            best, chosen = rank, (state, own)
    assert chosen is not None
    return chosen


def _is_held(weights: Weights, place: Place, tensor: TensorInfo) -> bool:
    if place.is_lazy or place.tensor.is_meta or place.tensor.numel() < 2:
        return False
    try:
        return cast_between(plain(place.tensor), numbers_of(weights, tensor)) is not None
    except (ReadError, NotImplementedError, RuntimeError):
        return False


def numbers_of(weights: Weights, tensor: TensorInfo) -> Tensor:
    """The file's tensor, plain. Raises ReadError, NotImplementedError or RuntimeError where it has no numbers."""
    return plain(weights.stored(tensor))
