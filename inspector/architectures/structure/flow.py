"""What widths tell without the file's order: which nothing in the file puts out, alone or together, and which nobody
takes. Modules may be made in another order than they are called in."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement, pairwise

from inspector.architectures.structure.heads import taken_widths
from inspector.architectures.structure.types import (
    CONVOLUTIONS,
    RECURRENT,
    Layer,
    LayerKind,
)

_WEIGHTED = CONVOLUTIONS | RECURRENT | {LayerKind.LINEAR, LayerKind.MATRIX, LayerKind.ATTENTION}
# Layers whose shapes or bias say which width goes in.
_CERTAIN = frozenset({LayerKind.CONVOLUTION, LayerKind.TRANSPOSED, LayerKind.LINEAR})
_OPEN = frozenset({LayerKind.EITHER_CONVOLUTION, LayerKind.MATRIX})
_MOST_WIDTHS = 48
_MOST_JOINED = 3
_LEAST_CHAINED = 4
# Channels of a picture, a volume or a bundle of both, as they come.
_MOST_RAW = 16
# Halves behind a gate, thirds and quarters; as often the same maps joined.
_TIMES = (2, 3, 4)


def given_widths(layers: Sequence[Layer]) -> frozenset[int]:
    """What layers put out; of a layer of either direction both widths."""
    wide = [one for one in layers if one.kind in _WEIGHTED or one.kind is LayerKind.EMBEDDING]
    either = {one.inputs for one in wide if one.kind in _OPEN}
    return frozenset(width for width in ({one.outputs for one in wide} | either) if width)


def is_joined(width: int, given: Collection[int], *, most: int = _MOST_JOINED) -> bool:
    """Whether two or three of the widths make it together. Of very many some always do."""
    return len(given) > _MOST_WIDTHS or width in _sums(frozenset(given), most)


@lru_cache(maxsize=16)
def _sums(given: frozenset[int], most: int) -> frozenset[int]:
    return frozenset(
        sum(parts) for number in range(2, most + 1) for parts in combinations_with_replacement(sorted(given), number)
    )


def is_made(width: int, given: Collection[int]) -> bool:
    """Whether a layer puts it out, or as much comes of the widths by joining them or taking them apart."""
    parts = any(width * times in given or (width % times == 0 and width // times in given) for times in _TIMES)
    return width in given or parts or is_joined(width, given)


def start_of(layers: Sequence[Layer]) -> Layer | None:
    """The convolution that takes what comes from outside, where the first of the file takes as many as others put out
    together: the only one of so few channels that nothing in the file makes. None where the order says so or nothing
    does."""
    weighted = [one for one in layers if one.kind in _WEIGHTED and one.inputs and one.outputs]
    first = weighted[0] if weighted else None
    if first is None or first.kind not in CONVOLUTIONS:
        return None
    given = given_widths(layers)
    if (first.inputs or 0) <= _MOST_RAW or first.inputs in given or not is_joined(first.inputs or 0, given):
        return None
    few = [
        one
        for one in weighted[1:]
        if one.kind is LayerKind.CONVOLUTION
        and 1 < (one.inputs or 0) <= _MOST_RAW
        and (one.inputs or 0) not in given
        and not is_joined(one.inputs or 0, given)
    ]
    # Filters of a grouped convolution see as few; it stands in the middle of a part.
    return few[0] if len(few) == 1 and _begins_a_part(few[0], first, weighted) else None


def _begins_a_part(layer: Layer, first: Layer, weighted: Sequence[Layer]) -> bool:
    """Whether a part of its own begins with it in which each layer takes what the one before it puts out."""
    part = beside(layer.path, first.path)
    group = [one for one in weighted if one.path.startswith(f"{part}.")]
    chained = all(a.outputs == b.inputs for a, b in pairwise(group))
    return len(group) >= _LEAST_CHAINED and group[0] is layer and chained


def unmade(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """The first layer of each width that no layer puts out, alone or together, in a file without an order. What a map
    laid flat may have is left out."""
    given = given_widths(layers)
    maps = {one.outputs for one in layers if one.kind in CONVOLUTIONS and one.outputs}
    found: dict[int, Layer] = {}
    for one in layers:
        width = one.inputs or 0
        flat = one.kind is LayerKind.LINEAR and any(width % channels == 0 for channels in maps if channels)
        if one.kind in _CERTAIN and width > 1 and not flat and not is_made(width, given):
            found.setdefault(width, one)
    return tuple(found.values())


def goes_on_into(layers: Sequence[Layer], last: Layer) -> Layer | None:
    """The end of a part made before it that begins with what the last layer puts out and ends in what nobody takes:
    then the last of the file is not the last that is called."""
    weighted = [one for one in layers if one.kind in _WEIGHTED and one.inputs and one.outputs]
    taken = taken_widths(layers, ordered=True)
    parts: dict[str, list[Layer]] = {}
    for one in weighted:
        parts.setdefault(beside(one.path, last.path), []).append(one)
    own = beside(last.path, last.path)
    for path, group in parts.items():
        end = group[-1]
        ends = end.kind in _CERTAIN and not taken[end.outputs or 0] and len(group) > 1
        if path != own and ends and group[0].inputs == last.outputs != end.outputs:
            return end
    return None


def beside(path: str, other: str) -> str:
    """The module that it is in, where its name first differs from the other's: "module.decoder" of a layer in it beside
    "module.lstm.linear". For the other itself the module at the level of the first that differs is its own."""
    names, others = path.split("."), other.split(".")
    depth = next((n for n, (a, b) in enumerate(zip(names, others, strict=False)) if a != b), len(names) - 1)
    return ".".join(names[: depth + 1])
