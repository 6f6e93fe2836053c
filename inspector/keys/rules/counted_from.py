"""A file that counts all its layers from 1 where the target counts them from 0 (Lua, MATLAB, Julia, papers), or the
other way round.

One row of layers that moved by one may be a part of a deeper network, and equal neighbours speak for their own numbers:
`index_shift` asks. Where every row moves alike, the rows inside each other, too, and every name is the target's then,
the file counts otherwise and lacks nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from inspector.keys.placing.tree import Leaf, Path, numbered
from inspector.keys.report import Cost, RuleUse
from inspector.keys.rules.entry import Move, Phrase, Questions, Renames, Rule, Spelling

# A row's place, the numbers in its path left out, and what stands before its own number.
_Row = tuple[Path, str]
_FEWEST_ROWS = 2
# A head for other classes, and what else of a network has another size: its weight and bias.
_OTHER_SIZES = 2
_FIRSTS = frozenset({0, 1})


def _spells(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Spelling]:
    if len(leaves) != len(places) or _has_a_first(leaves) is _has_a_first(places):
        return
    ours, theirs = [leaf.name.split(".") for leaf in leaves], [place.name.split(".") for place in places]
    around, there = _around(ours), _around(theirs)
    rows, goals = _rows([name[around:] for name in ours]), _rows([name[there:] for name in theirs])
    shift = _shift(rows, goals)
    if not shift:
        return
    moved = {row for row, numbers in rows.items() if numbers != goals[row]}
    names = [_renumbered(name, around, moved, shift) for name in ours]
    shapes = {tuple(name[there:]): place.shape for name, place in zip(theirs, places, strict=True)}
    keys = [tuple(name[around:]) for name in names]
    if shapes.keys() != set(keys):
        return
    if sum(shapes[key] != leaf.shape for key, leaf in zip(keys, leaves, strict=True)) > _OTHER_SIZES:
        return
    move = Move(RULE.id, f"count from {0 if shift < 0 else 1}, as the target does", (("shift", str(shift)),))
    for leaf, name in zip(leaves, names, strict=True):
        if (made := ".".join(name)) != leaf.name:
            yield Spelling(leaf, made, move)


def _has_a_first(leaves: Sequence[Leaf]) -> bool:
    # One search of one text: every diagnosis of thousands of names asks this.
    return ".0." in "." + "\n.".join([leaf.name for leaf in leaves])


def _around(names: Sequence[Sequence[str]]) -> int:
    """How many levels all names share, the last of which is no number."""
    shared = 0
    while all(len(name) > shared + 1 and name[shared] == names[0][shared] for name in names):
        if numbered(names[0][shared]) is not None:
            break
        shared += 1
    return shared


def _rows(names: Sequence[Sequence[str]]) -> dict[_Row, list[int]]:
    """The numbers of each row, as the side lists them first."""
    found: dict[_Row, dict[int, None]] = {}
    for name in names:
        plain: list[str] = []
        for segment in name:
            number = numbered(segment)
            if number is not None:
                found.setdefault((tuple(plain), number[0]), {})[number[1]] = None
            plain.append(number[0] if number is not None else segment)
    return {row: list(numbers) for row, numbers in found.items()}


def _shift(rows: dict[_Row, list[int]], goals: dict[_Row, list[int]]) -> int:
    """-1 or 1 where every row moves so; a row of other modules (conv1, conv2) may stand as it is. 0 otherwise."""
    if rows.keys() != goals.keys():
        return 0
    shifts: set[int] = set()
    moving = 0
    for row, numbers in rows.items():
        first, goal = min(numbers), min(goals[row])
        if not {first, goal} <= _FIRSTS or not _is_listed(numbers):
            return 0
        if first == goal and (not row[1] or set(numbers) != set(goals[row])):
            return 0
        if first != goal:
            if {n + goal - first for n in numbers} != set(goals[row]):
                return 0
            shifts.add(goal - first)
            # One alone may be one of several that the file has not.
            moving += len(numbers) > 1
    return shifts.pop() if len(shifts) == 1 and moving >= _FEWEST_ROWS else 0


def _is_listed(numbers: list[int]) -> bool:
    """Whether a side lists a row as it counts it, or as an alphabet does."""
    return numbers == sorted(numbers) or numbers == sorted(numbers, key=str)


def _renumbered(name: Sequence[str], around: int, moved: set[_Row], shift: int) -> list[str]:
    plain: list[str] = []
    made = list(name[:around])
    for segment in name[around:]:
        number = numbered(segment)
        if number is not None and (tuple(plain), number[0]) in moved:
            segment = f"{number[0]}{number[1] + shift}"
        made.append(segment)
        plain.append(number[0] if number is not None else segment)
    return made


def _phrases(use: RuleUse) -> tuple[Phrase, ...]:
    shift = int(dict(use.parameters)["shift"])
    code = f"int(found[0]) {'+' if shift > 0 else '-'} {abs(shift)}"
    # Numbers that are a level of their own, or all that a level ends in.
    return tuple(_phrase(pattern, shift, code) for pattern in (r"(?<![^.])[0-9]+(?![^.])", r"[0-9]+(?![^.])"))


def _phrase(pattern: str, shift: int, code: str) -> Phrase:
    return Phrase(
        f"key = re.sub({pattern!r}, lambda found: str({code}), key)",
        lambda key: re.sub(pattern, lambda found: str(int(found[0]) + shift), key),
    )


RULE = Rule(
    id="counted-from",
    title="Counted from 1",
    says=(
        "Renumbers a file that counts every row of layers from 1 where the target counts from 0, or the other way "
        "round, where each name is the target's then."
    ),
    cost=Cost.LOSSLESS,
    done="{tensors} are numbered as the target counts",
    renames=Renames.NUMBERS,
    spells=_spells,
    phrases=_phrases,
)
