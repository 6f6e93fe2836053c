"""How much of a tensor its pieces cover: what is missing, what is there twice, and where the first gap is.

Counted exactly, in cells between the pieces' own boundaries, so that the cost depends on the number of pieces and
never on the size of the tensor.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

Box = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """missing: elements in no box. doubled: elements that further boxes hold again. first_missing: the row-major
    number of the first element in no box, None when there is none. cells: what the count cost."""

    missing: int
    doubled: int
    first_missing: int | None
    cells: int = 0


def survey(shape: Sequence[int], boxes: Sequence[Box], *, most_cells: int) -> Coverage | None:
    """Count what (offsets, sizes) boxes cover of a tensor. Boxes must lie inside it.

    None when the boundaries make more than most_cells cells, or the boxes overlap as much: then nothing is known.
    """
    numel = math.prod(shape)
    boxes = [box for box in boxes if math.prod(box[1])]
    if not numel or not boxes:
        return Coverage(missing=numel, doubled=0, first_missing=0 if numel else None)
    if not shape:
        return Coverage(missing=0, doubled=len(boxes) - 1, first_missing=None, cells=len(boxes))
    cuts: list[list[int]] = []
    for axis, size in enumerate(shape):
        ends = {0, size}
        for offsets, sizes in boxes:
            ends.update((offsets[axis], offsets[axis] + sizes[axis]))
        cuts.append(sorted(ends))
    counts = [len(ends) - 1 for ends in cuts]
    cells = math.prod(counts)
    if cells > most_cells:
        return None
    marks = bytearray(cells)
    left = 2 * most_cells + 1000
    for box in boxes:
        for first, n in _runs(box, cuts, counts):
            left -= n + 1
            if left < 0:
                return None
            marks[first : first + n] = b"\x01" * n
    first_missing, missing = None, 0
    for cell, mark in enumerate(marks):
        if mark:
            continue
        corner, volume = _cell(cell, cuts, counts, shape)
        first_missing = corner if first_missing is None else first_missing
        missing += volume
    held = sum(math.prod(sizes) for _, sizes in boxes)
    return Coverage(missing=missing, doubled=held - (numel - missing), first_missing=first_missing, cells=cells)


def _runs(box: Box, cuts: list[list[int]], counts: list[int]) -> Iterator[tuple[int, int]]:
    """(first cell, number of cells) of a box, along the last axis."""
    spans = [
        (bisect_left(ends, offset), bisect_left(ends, offset + size))
        for ends, offset, size in zip(cuts, box[0], box[1], strict=True)
    ]
    for place in product(*(range(a, b) for a, b in spans[:-1])):
        first = 0
        for at, count in zip(place, counts[:-1], strict=True):
            first = first * count + at
        yield first * counts[-1] + spans[-1][0], spans[-1][1] - spans[-1][0]


def _cell(number: int, cuts: list[list[int]], counts: list[int], shape: Sequence[int]) -> tuple[int, int]:
    """(row-major number of its first element, its volume) of one cell."""
    place: list[int] = []
    for count in reversed(counts):
        number, at = divmod(number, count)
        place.append(at)
    corner, volume = 0, 1
    for at, ends, size in zip(reversed(place), cuts, shape, strict=True):
        corner = corner * size + ends[at]
        volume *= ends[at + 1] - ends[at]
    return corner, volume
