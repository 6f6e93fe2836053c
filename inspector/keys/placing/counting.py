"""What numbers in the names of modules count, and whether a mapping of kinds keeps that count."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise, permutations

from inspector.keys.placing.parts import Part
from inspector.keys.placing.tree import Path
from inspector.keys.placing.words import ANY

_NUMBER = re.compile(r"[0-9]+")
_LONGEST_NUMBER = 4
# Of three modules there are six orders; more are no question for anybody.
_MOST_ASKED = 3

Kinds = dict[Path, list[Part]]
Choice = tuple[tuple[Part, Part], ...]
# A kind's name without numbers, and its own number, if it has one.
_Form = tuple[str, int | None]


def counted(parts: Sequence[Part]) -> list[Part] | None:
    """In the order of their numbers; None where these do not count anything."""
    keys = []
    for part in parts:
        numbers = _NUMBER.findall(".".join(part.path))
        if any(len(n) > _LONGEST_NUMBER for n in numbers):
            return None
        keys.append(tuple(int(n) for n in numbers))
    if len(set(keys)) < len(keys) or len({len(key) for key in keys}) != 1:
        return None
    for position in zip(*keys, strict=True):
        values = set(position)
        if max(values) - min(values) > 5 * len(values) + 5:
            return None
    return [part for _, part in sorted(zip(keys, parts, strict=True), key=lambda item: item[0])]


def runs_up(parts: Sequence[Part]) -> bool | None:
    """Whether they stand in the order of their numbers, or in the reverse one; None for neither."""
    firsts = [part.first for part in parts]
    if all(a < b for a, b in pairwise(firsts)):
        return True
    return False if all(a > b for a, b in pairwise(firsts)) else None


def form_of(parts: Sequence[Part], depth: int) -> _Form:
    """The name below what was agreed on without its numbers, and the last of them where all of the kind share it."""
    names = [".".join(part.path[depth:]) for part in parts]
    numbers = {found[-1] if (found := _NUMBER.findall(name)) else "" for name in names}
    number = numbers.pop() if len(numbers) == 1 else ""
    return _NUMBER.sub(ANY, names[0]), int(number) if number else None


def keeps_rows(kinds: Sequence[tuple[_Form, _Form]]) -> bool:
    """Whether kinds that a number tells apart keep their order: where conv1_block and conv2_block are blocks.1 and
    blocks.2, conv3_block is not what is left, blocks.0. Nor is conv1 the target's conv0 where its conv1 is taken for
    another kind's, convs.0.
    """
    rows: dict[tuple[str, str], list[tuple[int, int]]] = {}
    goes: dict[tuple[str, int], str] = {}
    comes: dict[tuple[str, int], str] = {}
    for (one, number), (other, goal) in kinds:
        if number is not None:
            goes[one, number] = other
        if goal is not None:
            comes[other, goal] = one
        if number is not None and goal is not None:
            rows.setdefault((one, other), []).append((number, goal))
    for (one, other), row in rows.items():
        if any(a >= b for (_, a), (_, b) in pairwise(sorted(row))):
            return False
        for n, m in row:
            if n != m and (comes.get((other, n), one) != one or goes.get((one, m), other) != other):
                return False
    return True


def all_ways(kinds: Kinds, others: Kinds) -> tuple[Choice, ...]:
    """Every order of a few modules, that of their numbers first."""
    sides = ([part for parts in side.values() for part in parts] for side in (kinds, others))
    ours, theirs = (counted(side) or side for side in sides)
    if len(ours) > _MOST_ASKED:
        return ()
    return tuple(tuple(zip(ours, order, strict=True)) for order in permutations(theirs))
