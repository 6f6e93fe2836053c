"""Numbers in names that speak against a reading by words: two rows that run against each other, a row that begins
elsewhere, levels that are counted the other way round."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from inspector.keys.placing.grids import counted_alike
from inspector.keys.placing.matching import Counterpart
from inspector.keys.placing.parts import Part
from inspector.keys.placing.tree import Leaf, Path
from inspector.keys.placing.words import read

_NUMBER = re.compile(r"[0-9]+")
_INSIDE = re.compile(r"_[0-9]{1,4}_")
# layers.1a, blocks2b; the 2d of a convolution is none.
_LETTERED = re.compile(r"(?<![0-9])(?![123]d)([0-9]+)[a-z](?=[._/])")
_JOINED = re.compile(r"(?<=[A-Za-z])_?(?=[0-9])")
# layers.-1 is the last of all, or one before layers.0: nothing tells.
_SIGNED = re.compile(r"(?<![A-Za-z0-9])-[0-9]")


def crossed(pair: Counterpart) -> bool:
    """Whether counted levels stand the other way round, their numbers not: towers.0.units.1 as units.0.towers.1."""
    one, other = read(pair.ours.path, 0), read(pair.theirs.path, 0)
    if one.words == other.words or one.words != other.above or one.above != other.words:
        return False
    numbers = [_NUMBER.findall(".".join(part.path)) for part in (pair.ours, pair.theirs)]
    return len(numbers[0]) > 1 and numbers[0] != numbers[1][::-1]


def monotone(pairs: Sequence[Counterpart]) -> bool:
    """Whether numbers of one row of modules keep their order, also where shapes and not numbers placed them."""
    rows: dict[tuple[Path, str, Path, str], set[tuple[int, int, bool]]] = {}
    for pair in pairs:
        if pair.ours.path and pair.theirs.path:
            one, other = numbered_end(pair.ours.path[-1]), numbered_end(pair.theirs.path[-1])
            if one and other:
                key = (pair.ours.path[:-1], one[0], pair.theirs.path[:-1], other[0])
                rows.setdefault(key, set()).add((one[1], other[1], pair.by_number))
    for row in rows.values():
        if any(by_number for _, _, by_number in row):
            numbers = sorted({(ours, theirs) for ours, theirs, _ in row})
            if any(a >= b for (_, a), (_, b) in pairwise(numbers)):
                return False
    return True


def runs_against(pairs: Sequence[Counterpart]) -> bool:
    """Whether shapes turn one row of numbered modules round and numbers keep another beside it as it is counted: an FPN
    whose laterals 2 to 5 are inner_blocks 3 to 0 has its outputs the other way round, too."""
    rows: dict[tuple[Path, str, Path, str], set[tuple[int, int, bool]]] = {}
    for pair in pairs:
        one, other = _innermost(pair.ours.path), _innermost(pair.theirs.path)
        if one and other and not pair.ours.children:
            row = rows.setdefault((*one[0], *other[0]), set())
            row.add((one[1], other[1], pair.by_number))
    turned, kept = set(), set()
    for row in rows.values():
        order = [there for _, there, _ in sorted(row)]
        numbers = tuple(sorted(n for n, _, _ in row)), tuple(sorted(order))
        if len(row) > 1 and len(set(numbers[0])) == len(set(numbers[1])) == len(row):
            if order == sorted(order, reverse=True):
                turned.add(numbers)
            elif any(by_number for _, _, by_number in row) and order == sorted(order):
                kept.add(numbers)
    return bool(turned & kept)


def runs_back(pairs: Sequence[Counterpart]) -> bool:
    """Whether of two layers alike the one with the higher number has the lower one in the target: norm2.wrapped as
    norms.0 beside norm1 as norms.1, convs.0.block2 as conv2 beside convs.1 as conv1. Of the outermost numbers in their
    names, and of each of ours with the innermost of theirs."""
    rows: dict[tuple[object, ...], dict[int, set[int]]] = {}
    for pair in pairs:
        if pair.ours.children:
            continue
        ours, theirs = _numbered_levels(pair.ours.path), _numbered_levels(pair.theirs.path)
        if not ours or not theirs:
            continue
        bag = pair.ours.bag
        (first, number), (goal, there) = ours[0], theirs[0]
        rows.setdefault((0, first, goal, bag), {}).setdefault(number, set()).add(there)
        goal, there = theirs[-1]
        for level, number in ours:
            rows.setdefault((-1, level, goal, bag), {}).setdefault(number, set()).add(there)
    for row in rows.values():
        # What has several counterparts is counted twice, by rows and columns.
        order = [next(iter(there)) for _, there in sorted(row.items()) if len(there) == 1]
        if len(order) == len(set(order)) == len(row) and order != sorted(order):
            return True
    return False


@lru_cache(maxsize=20_000)
def _numbered_levels(path: Path) -> list[tuple[tuple[Path, str], int]]:
    """((what stands above it, its name without the number), number) of each segment that is numbered."""
    found = []
    for at, segment in enumerate(path):
        if end := numbered_end(segment):
            found.append(((path[:at], end[0]), end[1]))
    return found


def _innermost(path: Path) -> tuple[tuple[Path, str], int] | None:
    """((what stands around it, its name without the number), number) of the innermost segment that is numbered; what
    lies in it is part of the row's name."""
    for at in range(len(path) - 1, -1, -1):
        if (end := numbered_end(path[at])) and not (path[at] == "0" and at and numbered_end(path[at - 1])):
            return ((path[:at], f"{end[0]}.{'.'.join(path[at + 1 :])}"), end[1])
    return None


@lru_cache(maxsize=20_000)
def numbered_end(segment: str) -> tuple[str, int] | None:
    """("norm", 1) of "norm1"; None without a number at the end."""
    found = re.fullmatch(r"(.*?)([0-9]{1,4})", segment)
    return (found[1], int(found[2])) if found else None


def against_definition(pairs: Sequence[Counterpart]) -> bool:
    """Whether parts that one side only numbers (norm1, norm2) stand there in another order than their counterparts,
    which have names, do: by convention norm1 is the attention's, and in a block that begins with its MLP it is not.

    Only for sides that are both in the order of their definition.
    """
    return any(_out_of_order(rows) for rows in (_numbered_rows(pairs, True), _numbered_rows(pairs, False)))


def _numbered_rows(pairs: Sequence[Counterpart], ours: bool) -> Iterable[list[tuple[int, int]]]:
    """Of each row of modules that one side numbers and the other names, where both stand: (one side's, the other's)."""
    rows: dict[tuple[Path, str, Path, int], list[tuple[int, int, int]]] = {}
    for pair in pairs:
        one, other = (pair.ours, pair.theirs) if ours else (pair.theirs, pair.ours)
        if one.children:
            continue
        same = {end[1] for segment in other.path if (end := numbered_end(segment)) and end[0]}
        for at, segment in enumerate(one.path):
            end = numbered_end(segment)
            if end and end[0] and end[1] not in same:
                key = (one.path[:at], end[0], one.path[at + 1 :], one.bag)
                rows.setdefault(key, []).append((end[1], one.first, other.first))
    # Where its own numbers do not run up, the order that a side lists its modules in is none.
    return [
        [(first, there) for _, first, there in row]
        for row in rows.values()
        if all(a < b for (_, a, _), (_, b, _) in pairwise(sorted(row)))
    ]


def _out_of_order(rows: Iterable[list[tuple[int, int]]]) -> bool:
    return any(a >= b for row in rows for (_, a), (_, b) in pairwise(sorted(row)))


def counts_from_another(pairs: Sequence[Counterpart]) -> bool:
    """Whether a name without a number became a number of a row (norm, norm1 as norm2, norm1), or one number of a word
    alone another (gamma_1 as gamma_2): the count of the two is not the same, and nothing tells how they differ."""
    beside = Counter((pair.ours.path[:-1], _stem_and_number(pair.ours.path[-1])[0]) for pair in pairs if pair.ours.path)
    rows: dict[tuple[Path, str, Path], list[tuple[int | None, int | None]]] = {}
    for pair in pairs:
        if pair.ours.path[-1:] != pair.theirs.path[-1:] and len(pair.ours.path) == len(pair.theirs.path):
            (one, first), (other, second) = (_stem_and_number(part.path[-1]) for part in (pair.ours, pair.theirs))
            if one and one == other and first != second:
                rows.setdefault((pair.ours.path[:-1], one, pair.theirs.path[:-1]), []).append((first, second))
    for (above, stem, _), row in rows.items():
        if beside[above, stem] > 1 and any((a is None) is not (b is None) for a, b in row):
            return True
        if beside[above, stem] == 1 and None not in row[0] and set(row[0]) != {0, 1}:
            return True
    return False


def exchanges_numbers(pairs: Sequence[Counterpart]) -> bool:
    """Whether two layers of one word have each other's numbers in the target, as their shapes want it: pointwise1 and
    pointwise2 of a block."""
    rows: dict[tuple[Path, Path, frozenset[str]], set[tuple[str, str]]] = {}
    for pair in pairs:
        if not pair.ours.children and pair.ours.path and pair.theirs.path:
            one, other = read(pair.ours.path[-1:], 0), read(pair.theirs.path[-1:], 0)
            if one.words and one.words == other.words and one.number and other.number and one.number != other.number:
                row = rows.setdefault((pair.ours.path[:-1], pair.theirs.path[:-1], one.words), set())
                row.add((one.number, other.number))
    return any((b, a) in row for row in rows.values() for a, b in row)


def counts_inside_from_another(pairs: Sequence[Counterpart]) -> bool:
    """Whether numbers within the segments of names (blocks_7_attn) are others than the target's and begin neither at 0
    nor at 1, or leave some out: the blocks of a deeper network."""
    rows: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for pair in pairs:
        if not pair.ours.children and any(_INSIDE.search(segment) for segment in pair.ours.path):
            ours, theirs = ".".join(pair.ours.path), ".".join(pair.theirs.path)
            rows.setdefault((_NUMBER.sub("#", ours), _NUMBER.sub("#", theirs)), []).append((ours, theirs))
    for row in rows.values():
        own, there = (zip(*(map(int, _NUMBER.findall(pair[n])) for pair in row), strict=True) for n in (0, 1))
        for numbers, others in zip(map(set, own), map(set, there), strict=False):
            if numbers != others and (min(numbers) > 1 or max(numbers) - min(numbers) >= len(numbers)):
                return True
    return False


def _stem_and_number(segment: str) -> tuple[str, int | None]:
    end = numbered_end(segment)
    return (end[0].rstrip("_"), end[1]) if end else (segment, None)


def counts_another_way(pairs: Sequence[Counterpart]) -> bool:
    """Whether modules of one shape that two numbers count could be counted the other way round: layers.0.1 as
    heads.1.layers.0 or as heads.0.layers.1."""
    rows: dict[tuple[str, str, int], list[Counterpart]] = {}
    for pair in pairs:
        own = (numbered_end(part.path[-1]) for part in (pair.ours, pair.theirs) if part.path)
        # A number in a layer's own name (bn1) is the innermost on both sides.
        if not pair.ours.children and not any(end and end[0] for end in own):
            names = (_NUMBER.sub("#", ".".join(part.path)) for part in (pair.ours, pair.theirs))
            rows.setdefault((*names, pair.ours.bag), []).append(pair)  # type: ignore[arg-type]
    for row in rows.values():
        if len(row) < 4:
            continue
        row.sort(key=lambda pair: _counts_of(pair.ours))
        likely = counted_alike([pair.ours for pair in row], [pair.theirs for pair in row])
        if likely is None or any(one is not pair.theirs for one, pair in zip(likely, row, strict=True)):
            return True
    return False


def _counts_of(part: Part) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBER.findall(".".join(part.path)))


# What holds what: a stage has blocks, and these layers.
_RANKS = {
    word: rank
    for rank, words in enumerate(("stage stack level group", "block branch expert", "layer unit conv sublayer"))
    for word in words.split()
}
_COUNTED = re.compile(r"([a-z]+)_?([0-9]{1,4})")


def nested_inside_out(pairs: Sequence[Counterpart]) -> bool:
    """Whether names count what holds inside of what it holds (block0.stage1), and the other side has one row: in which
    order the two count it, no name says."""
    for pair in pairs:
        if pair.ours.children:
            continue
        sides = ".".join(pair.ours.path), ".".join(pair.theirs.path)
        numbers = len(_NUMBER.findall(sides[0])), len(_NUMBER.findall(sides[1]))
        if numbers[0] != numbers[1] and _is_inside_out(sides[numbers[0] < numbers[1]].lower()):
            return True
    return False


@lru_cache(maxsize=20_000)
def _is_inside_out(name: str) -> bool:
    ranks = [_RANKS.get(word.removesuffix("s"), -1) for word, _ in _COUNTED.findall(name)]
    told = [rank for rank in ranks if rank >= 0]
    return told != sorted(told)


def count_with_signs(*sides: Sequence[Leaf]) -> bool:
    return any("-" in leaf.name and _SIGNED.search(leaf.name) for side in sides for leaf in side)


def counts_with_letters(leaves: Sequence[Leaf]) -> bool:
    """Whether a letter stands behind a number that the file has without one as well: layers.1a beside layers_1."""
    text = "\n".join([leaf.name for leaf in leaves])
    if not _LETTERED.search(text):
        return False
    names = _JOINED.sub(".", text.replace("/", ".")).split("\n")
    lettered = {name[: found.end(1)] for name in names if (found := _LETTERED.search(name))}
    return any(name.startswith(f"{number}.") for number in lettered for name in names)


class Rows:
    """The rows of counted modules of one side, each looked at once."""

    def __init__(self, root: Part) -> None:
        self._root = root
        self._known: dict[tuple[Path, str], tuple[list[int], bool]] = {}

    def of(self, above: Path, stem: str) -> tuple[list[int], bool]:
        """The numbers of a row, and whether no two of it hold the same."""
        if (above, stem) not in self._known:
            node = self._root
            for segment in above:
                node = node.children[segment]
            found = {s: n[1] for s in node.children if (n := numbered_end(s)) and n[0] == stem}
            bags = {node.children[s].bag for s in found}
            self._known[above, stem] = sorted(found.values()), 1 < len(bags) == len(found)
        return self._known[above, stem]


def counts_from_the_start(pair: Counterpart, ours: Rows, theirs: Rows) -> bool:
    """Whether a block that has another number is one of a row that is counted from 0 or 1 without a gap.

    Else it may be one of some blocks of a deeper network, unless no two of the row hold the same: what each of them
    holds says then which it is (detectron2's res2 to res5).
    """
    if not pair.ours.children or not pair.ours.path or not pair.theirs.path:
        return True
    sides = []
    for part, rows in ((pair.ours, ours), (pair.theirs, theirs)):
        at, row = next(
            ((n, r) for n in range(len(part.path), 0, -1) if (r := numbered_end(part.path[n - 1]))), (0, None)
        )
        if row is None:
            return True
        sides.append((row[1], *rows.of(part.path[: at - 1], row[0])))
    if sides[0][0] == sides[1][0] or all(apart for _, _, apart in sides):
        return True
    return all(numbers[0] <= 1 and numbers[-1] - numbers[0] == len(numbers) - 1 for _, numbers, _ in sides)
