"""Rows of modules that are counted by several numbers: which number of the file is which of the target's.

blocks.0.norm1, blocks.0.norm2, blocks.1.norm1 are norm1s.0, norm2s.0, norm1s.1: by the order of their numbers one would
be taken for the other. Numbers are paired so that each level of the file is one of the target's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import permutations

from inspector.keys.placing.parts import Part
from inspector.keys.placing.words import words_of

_NUMBER = re.compile(r"[0-9]+")
# Numbers in one name that tell modules apart; of more, only the order as they stand is looked at.
_MOST_COLUMNS = 4

Key = tuple[int, ...]


def counted_alike(first: Sequence[Part], second: Sequence[Part]) -> list[Part] | None:
    """The modules of `second` in the order of their counterparts in `first`, which stands in the order of its numbers;
    None where the numbers of both sides are no count of one thing, or of one thing in two ways.

    One number on a side is a count through all levels of the other, as is everywhere where the levels are fewer.
    """
    ours, theirs = _columns(first), _columns(second)
    count = len(ours[0].values)
    if count < 2 or len(theirs[0].values) != count:
        return list(second)
    orders = permutations(range(count)) if count <= _MOST_COLUMNS else iter([tuple(range(count))])
    fitting: list[tuple[tuple[int, int, bool], list[Part]]] = []
    for order in orders:
        turned = sorted(theirs, key=lambda row: tuple(row.values[at] for at in order))
        if not _one_tree([row.values for row in ours], [tuple(row.values[at] for at in order) for row in turned]):
            continue
        stems = sum(ours[0].stems[n] == theirs[0].stems[at] for n, at in enumerate(order))
        equal = sum({row.values[n] for row in ours} == {row.values[at] for row in theirs} for n, at in enumerate(order))
        fitting.append(((stems, equal, order == tuple(range(count))), [row.part for row in turned]))
    if not fitting:
        return None
    best = max(score for score, _ in fitting)
    rivals = [rows for score, rows in fitting if score[:2] == best[:2]]
    # A square grid reads both ways: as it is nested where the words of the levels are the same, else nobody knows.
    if len(rivals) > 1 and not (best[2] and best[0] == count):
        return None
    return next(rows for score, rows in fitting if score == best)


def is_square(counted: Iterable[tuple[Sequence[str], object]]) -> bool:
    """Whether two numbers count modules that are all alike, as many by the one as by the other: which of the two is
    which on another side, no name and no shape tells.

    counted: the segments of each tensor's name from the first number on, and its shape.
    """
    shapes: dict[tuple[str, ...], object] = {}
    alike: dict[tuple[str, ...], dict[tuple[str, str], None]] = {}
    for path, shape in counted:
        if len(path) < 3 or not (path[0].isdigit() and path[1].isdigit()):
            return False
        inside = tuple(path[2:])
        if shapes.setdefault(inside, shape) != shape:
            return False
        alike.setdefault(inside, {})[path[0], path[1]] = None
    for places in alike.values():
        outer, inner = ({place[n] for place in places} for n in (0, 1))
        if outer != inner or len(outer) < 2 or len(places) != len(outer) ** 2:
            return False
    return bool(alike)


class _Row:
    """values: of the numbers that are not the same in all names. stems: the words before each."""

    def __init__(self, part: Part, numbers: Key, stems: Sequence[tuple[str, ...]], kept: Sequence[int]) -> None:
        self.part = part
        self.values = tuple(numbers[n] for n in kept)
        self.stems = tuple(stems[n] for n in kept)


def _columns(parts: Sequence[Part]) -> list[_Row]:
    read = []
    words: tuple[str, ...]
    found: list[tuple[int, tuple[str, ...]]]
    known: dict[str, tuple[tuple[str, ...], list[int]]] = {}
    for part in parts:
        found, words = [], ()
        for segment in part.path:
            if segment not in known:
                known[segment] = words_of(segment), [int(number) for number in _NUMBER.findall(segment)]
            own, numbers = known[segment]
            # A number alone counts what is named before it.
            words = own or words
            for number in numbers:
                found.append((number, words))
        read.append((part, tuple(n for n, _ in found), tuple(words for _, words in found)))
    kept = [
        n for n, column in enumerate(zip(*(numbers for _, numbers, _ in read), strict=True)) if len(set(column)) > 1
    ]
    return [_Row(part, numbers, stems, kept) for part, numbers, stems in read]


def _one_tree(ours: Sequence[Key], theirs: Sequence[Key]) -> bool:
    """Whether rows that share their first numbers on the one side share as many on the other, level by level."""
    for depth in range(1, len(ours[0])):
        there: dict[Key, Key] = {}
        for one, other in zip(ours, theirs, strict=True):
            if there.setdefault(one[:depth], other[:depth]) != other[:depth]:
                return False
        if len(set(there.values())) < len(there):
            return False
    return True
