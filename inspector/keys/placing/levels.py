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

    def contents(self) -> Contents | None:
        """What each module holds, by the ranks of its numbers; None where it is no square, or holds nothing known."""
        outer, inner = self.numbers
        if len(outer) != len(inner) or len(outer) < 2 or len(self.cells) != len(outer) ** 2:
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


def grids_of(leaves: Iterable[Leaf]) -> dict[tuple[str, str], Grid]:
    """Every pair of neighbouring numbers in the names, by (what stands before, the text of the levels)."""
    found: dict[tuple[str, str], Grid] = {}
    # Tensors of one module have the same numbers before their last words.
    known: dict[str, list[tuple[int, dict[str, Leaf]]]] = {}
    for leaf in leaves:
        module = leaf.name.rpartition(".")[0]
        below = known.get(module)
        if below is None:
            below = known[module] = []
            for before, levels, numbers, end in _pairs(module):
                grid = found.setdefault((before, levels.text), Grid(levels, {}))
                below.append((end, grid.cells.setdefault(numbers, {})))
        for end, cell in below:
            cell[leaf.name[end:]] = leaf
    return found


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


def _pairs(module: str) -> Iterator[tuple[str, Levels, tuple[int, int], int]]:
    """(what stands before, the levels, their numbers, where they end) of each two neighbouring numbers."""
    columns = list(_columns(module))
    for (start, at, word, number), (begins, second, own, last) in pairwise(columns):
        if not own and begins == at + len(number):
            continue  # conv1_2: one word for both numbers
        end = second + len(last)
        between = module[start:at], module[at + len(number) : second]
        text = "{}".join((*(part.replace("{", "{{").replace("}", "}}") for part in between), ""))
        yield module[:start], Levels(text, (word, own)), (int(number), int(last)), end


def _columns(module: str) -> Iterator[tuple[int, int, str, str]]:
    """(where its word begins, where it stands, its word, its digits) of each number."""
    begins, before = 0, ""
    count = 0
    for segment in module.split("."):
        done = 0
        for found in _NUMBER.finditer(segment):
            own = "".join(_WORD.findall(segment[done : found.start()])).lower()
            # A number alone counts what is named before it, unless that has a number of its own.
            alone = not done and found[0] == segment and bool(before) and not _NUMBER.search(before)
            start = begins - len(before) - 1 if alone else begins + done
            yield start, begins + found.start(), ("".join(_WORD.findall(before)).lower() if alone else own), found[0]
            done = found.end()
            count += 1
            if count == _MOST_NUMBERS:
                return
        begins += len(segment) + 1
        before = segment


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
