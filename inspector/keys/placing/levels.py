"""Two numbered levels of names and what their words say of another side's: stages.N.blocks.N beside block0.stage1.

A word carries its number along: where both words are on both sides, in the other nesting, so are the numbers. No shape
shows it where the modules form a square whose sides can be exchanged: as many by the one number as by the other, and
each of them holds what the one with its numbers exchanged holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from inspector.checkpoint.types import Shape
from inspector.keys.placing.roles import is_counter
from inspector.keys.placing.tree import Leaf
from inspector.keys.placing.words import words_of

_NUMBER = re.compile(r"[0-9]{1,4}(?![0-9])")
_WORD = re.compile(r"[A-Za-z]+")
# Numbers in one name: of more, only the first are looked at.
_MOST_NUMBERS = 6
# Fewer letters are no beginning of a word: disc for discriminators.
_SHORTEST_CUT = 3
# What any level of blocks is called: alone it proves nothing (FocalNet's layers.N.blocks.N are another's
# stages.N.layers.N).
_ANY_LEVEL = frozenset({"block", "group", "level"})


# Of each number in a segment: where its word begins, where it stands, its word, its digits.
Counted = list[tuple[int, int, str, str]]
# By the ranks of both numbers, the shapes that a module holds.
Contents = dict[tuple[int, int], tuple[Shape, ...]]


class Nesting(StrEnum):
    """Which number of one side is which of the other's: the outer one the outer, or the inner; or nothing tells."""

    SAME = "outer-is-outer"
    EXCHANGED = "outer-is-inner"
    OPEN = "open"
    UNSAID = "unsaid"


@dataclass(frozen=True, slots=True)
class Levels:
    """Two numbered levels of names, as they are called. text: the names between, numbers as {}; words: of each number,
    "" for none."""

    text: str
    words: tuple[str, str]

    def named(self, outer: int, inner: int) -> str:
        """A name's part with these numbers."""
        return self.text.format(outer, inner)


@dataclass(slots=True)
class Grid:
    """The modules that two levels count below one place. cells: by both numbers, tensors by the rest of their names."""

    levels: Levels
    cells: dict[tuple[int, int], dict[str, Leaf]]

    @property
    def numbers(self) -> tuple[list[int], list[int]]:
        """The numbers of either level, in their order."""
        return sorted({a for a, _ in self.cells}), sorted({b for _, b in self.cells})

    @property
    def is_square(self) -> bool:
        """Whether both levels count as many, and each has every number of the other."""
        outer, inner = self.numbers
        return 2 <= len(outer) == len(inner) and len(self.cells) == len(outer) ** 2

    def contents(self) -> Contents | None:
        """What each module holds, by the ranks of its numbers; None where it is no square, or holds nothing known."""
        outer, inner = self.numbers
        if not self.is_square:
            return None
        made: Contents = {}
        for (a, b), below in self.cells.items():
            shapes = [leaf.shape for leaf in below.values() if not is_counter(leaf)]
            if not shapes or any(shape is None for shape in shapes):
                return None
            # Another library's kernels lie otherwise.
            turned = sorted(tuple(sorted(shape)) for shape in shapes if shape is not None)
            made[outer.index(a), inner.index(b)] = tuple(turned)
        return made


def squares_of(leaves: Iterable[Leaf]) -> dict[tuple[str, str], Grid]:
    """Every pair of neighbouring numbers in the names that could be exchanged, as many by the one as by the other, by
    (what stands before, the text of the levels)."""
    # Tensors of one module have the same numbers before their last words.
    modules: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        modules.setdefault(leaf.name.rpartition(".")[0], []).append(leaf)
    found: dict[tuple[str, tuple[str, str]], Grid] = {}
    below: dict[tuple[str, tuple[str, str]], list[tuple[tuple[int, int], int, list[Leaf]]]] = {}
    counted: dict[str, Counted] = {}
    for module, inside in modules.items():
        for before, between, words, numbers, end in _pairs(module, counted):
            key = before, between
            if key not in found:
                text = "{}".join((*(part.replace("{", "{{").replace("}", "}}") for part in between), ""))
                found[key], below[key] = Grid(Levels(text, words), {}), []
            found[key].cells.setdefault(numbers, {})
            below[key].append((numbers, end, inside))
    # Few are square: only these are looked into.
    squares = {key: grid for key, grid in found.items() if grid.is_square}
    for key, grid in squares.items():
        for numbers, end, inside in below[key]:
            grid.cells[numbers].update((leaf.name[end:], leaf) for leaf in inside)
    return {(before, grid.levels.text): grid for (before, _), grid in squares.items()}


def nesting(ours: Levels, theirs: Levels) -> Nesting:
    """What the words of two pairs of levels say of their numbers."""
    (a, b), (x, y) = ours.words, theirs.words
    along, across = [_alike(a, x), _alike(b, y)], [_alike(a, y), _alike(b, x)]
    if sum(along) >= sum(across) > 0 or sum(along) > sum(across):
        return Nesting.SAME
    if all(across):
        return Nesting.EXCHANGED
    if any(across):
        told = a if across[0] else b
        return Nesting.OPEN if _ANY_LEVEL & set(words_of(told)) else Nesting.EXCHANGED
    one, other = any(ours.words), any(theirs.words)
    if one is not other and all(ours.words if one else theirs.words) and (a, x) != (b, y):
        return Nesting.OPEN
    return Nesting.UNSAID


def _pairs(
    module: str, counted: dict[str, Counted]
) -> Iterator[tuple[str, tuple[str, str], tuple[str, str], tuple[int, int], int]]:
    """(what stands before, before each number, their words, the numbers, where they end) of each two neighbours.

    counted: the numbers of each segment that was looked at, which is added to.
    """
    columns = _columns(module, counted)
    for (start, at, word, number), (begins, second, own, last) in pairwise(columns):
        if not own and begins == at + len(number):
            continue  # conv1_2: one word for both numbers
        end = second + len(last)
        between = module[start:at], module[at + len(number) : second]
        yield module[:start], between, (word, own), (int(number), int(last)), end


def _columns(module: str, counted: dict[str, Counted]) -> list[tuple[int, int, str, str]]:
    """(where its word begins, where it stands, its word, its digits) of each number."""
    begins, before = 0, ""
    columns: list[tuple[int, int, str, str]] = []
    for segment in module.split("."):
        if segment not in counted:
            counted[segment] = _counted(segment)
        for word_at, at, own, digits in counted[segment]:
            # A number alone counts what is named before it, unless that has a number of its own.
            if digits == segment and before and not counted[before]:
                columns.append((begins - len(before) - 1, begins + at, _word(before), digits))
            else:
                columns.append((begins + word_at, begins + at, own, digits))
            if len(columns) == _MOST_NUMBERS:
                return columns
        begins += len(segment) + 1
        before = segment
    return columns


def _counted(segment: str) -> Counted:
    found, done = [], 0
    for number in _NUMBER.finditer(segment):
        found.append((done, number.start(), _word(segment[done : number.start()]), number[0]))
        done = number.end()
    return found


def _word(text: str) -> str:
    return "".join(_WORD.findall(text)).lower()


def _alike(one: str, other: str) -> bool:
    """Whether two words are one, one's plural, of one meaning, or the beginning of the other."""
    if not one or not other:
        return False
    short, long = sorted((_singular(one), _singular(other)), key=len)
    if short == long:
        return True
    own, foreign = set(words_of(short)), set(words_of(long))
    if own == foreign:
        return not own & _ANY_LEVEL
    # "layernorm" begins as "layer" and is a norm.
    return len(short) >= _SHORTEST_CUT and long.startswith(short) and foreign == {long}


def _singular(word: str) -> str:
    for end in ("ches", "shes", "sses", "xes"):
        if word.endswith(end):
            return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
