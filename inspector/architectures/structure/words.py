"""Modules numbered in words, "netOne" to "netSix": rows that feed each other, and blocks of layers that are joined."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from inspector.architectures.structure.natural_order import number_words
from inspector.architectures.structure.types import CONVOLUTIONS, Claim, Layer, LayerKind, Topic
from inspector.architectures.structure.wording import widths_text

_FORWARDS = frozenset({LayerKind.CONVOLUTION, LayerKind.EITHER_CONVOLUTION, LayerKind.LINEAR})
_LEAST, _MOST, _DEEPEST = 3, 4, 6
_LEAST_DENSE, _MOST_SHOWN = 4, 6
_LEAST_SIDE, _MOST_MORE = 5, 17

Row = list[tuple[str, list[Layer]]]


def rows_of(layers: Sequence[Layer]) -> Mapping[str, Row]:
    """Module -> its children of number words, by their numbers, with the layers in each that run forwards. A child with
    others, as a recurrent one, makes no row."""
    children: dict[str, dict[str, list[Layer]]] = {}
    for layer in layers:
        if layer.kind is LayerKind.TENSOR or not layer.inputs:
            continue
        names = layer.path.split(".")
        for depth in range(min(len(names), _DEEPEST)):
            children.setdefault(".".join(names[:depth]), {}).setdefault(names[depth], []).append(layer)
    found: dict[str, Row] = {}
    for parent, inside in children.items():
        numbers = number_words(inside)
        named = sorted(numbers, key=lambda name: numbers[name])
        for _, group in groupby(named, key=lambda name: numbers[name][0]):
            row = [(name, inside[name]) for name in group]
            if len(row) >= _LEAST and all(one.kind in _FORWARDS for _, part in row for one in part):
                found.setdefault(parent, row)
    return found


def rows_in_words(rows: Mapping[str, Row]) -> Iterator[Claim]:
    """Of modules each of which is a row of layers, and takes what the one before it puts out."""
    said = 0
    for parent, row in rows.items():
        inside = [group for _, group in row]
        if said >= _MOST or min(map(len, inside)) < 2 or not all(_is_chain(group) for group in inside):
            continue
        if any(a[-1].outputs != b[0].inputs for a, b in pairwise(inside)) or len({*map(len, inside)}) > 1:
            continue
        kernels = {one.kernel for group in inside for one in group}
        size = f"{inside[0][0].size} " if len(kernels) == 1 and inside[0][0].size else ""
        what = "convolutions" if inside[0][0].kind in CONVOLUTIONS else "linear layers"
        widths = widths_text([inside[0][0].inputs, *(group[-1].outputs for group in inside)])
        said += 1
        yield Claim(
            topic=Topic.REPEATS,
            says=f"{_where(parent, row)} are {len(row):,} stages of {len(inside[0]):,} {size}{what} each, numbered in "
            f"words: {widths} from stage to stage.",
            evidence="their names, and each takes what the one of the word before puts out",
            value=len(row),
            path=f"{parent}.{row[0][0]}".lstrip("."),
        )


def dense_modules(rows: Mapping[str, Row], layers: Sequence[Layer]) -> Iterator[Claim]:
    """Of single layers in such a row, each of which takes what the one before it takes and puts out (Huang 2017, eq.
    2): in how many modules, and what each ends in."""
    found: dict[tuple[tuple[str, ...], tuple[int | None, ...]], list[tuple[str, list[Layer]]]] = {}
    for parent, row in rows.items():
        group = [one for _, inside in row for one in inside]
        single = len(group) == len(row) >= _LEAST_DENSE
        if single and all(b.inputs == (a.inputs or 0) + (a.outputs or 0) for a, b in pairwise(group)):
            names = tuple(name for name, _ in row)
            found.setdefault((names, tuple(one.outputs for one in group)), []).append((parent, group))
    for (names, widths), same in list(found.items())[:_MOST]:
        first, last = same[0][1][0], same[0][1][-1]
        modules = ", ".join(parent for parent, _ in same[:_MOST_SHOWN])
        more = f" and {len(same) - _MOST_SHOWN:,} more" if len(same) > _MOST_SHOWN else ""
        takes = [group[0].inputs or 0 for _, group in same]
        listed = ", ".join(f"{width:,}" for width in takes[:_MOST_SHOWN])
        many = len(same) > 1
        yield Claim(
            topic=Topic.JOINS,
            says=f"{'In each of ' if many else 'In '}{modules or 'the network'}{more} the layers {names[0]} to "
            f"{names[-1]} put out {widths_text(widths)}, and each takes all that the one before it takes and puts out "
            f"(a dense block); the first {'ones take' if many else 'one takes'} {listed}"
            f"{_correlation(takes, layers)}, the last {'each puts' if many else 'one puts'} out {last.outputs:,}.",
            evidence=f"{first.evidence} ... {last.evidence}; sums that fit all of them",
            value=len(same),
            path=first.path,
        )


def _correlation(takes: Sequence[int], layers: Sequence[Layer]) -> str:
    """Where the least of what such blocks take is an odd number squared, and all others are that, what some layer puts
    out and as many more: displacements in two dimensions are counted so (Dosovitskiy 2015, section 3)."""
    least = min(takes)
    side = math.isqrt(least)
    others = [width - least for width in takes if width != least]
    if side * side != least or side % 2 == 0 or side < _LEAST_SIDE or len(others) < _LEAST:
        return ""
    given = {one.outputs for one in layers if one.kind in CONVOLUTIONS}
    more = next((n for n in range(1, _MOST_MORE) if all(width - n in given for width in others)), None)
    if more is None:
        return ""
    sums = ", ".join(f"{least + width:,} = {least:,} + {width - more:,} + {more:,}" for width in others[:_MOST_SHOWN])
    return (
        f" ({least:,} = {side} x {side}, as many as a correlation has for displacements of {side // 2} to each side, "
        f"and {sums})"
    )


def _is_chain(group: Sequence[Layer]) -> bool:
    return all(a.outputs == b.inputs for a, b in pairwise(group))


def _where(parent: str, row: Row) -> str:
    before = f"{parent}." if parent else ""
    return f"{before}{row[0][0]} to {before}{row[-1][0]}"
