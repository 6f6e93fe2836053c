"""Which is which of a few parts that only order has brought together, beside the way in which both sides list them.

`upsample, downsample` beside a target's `down, up` fit in order and the other way round, and a name may say so to
somebody who knows the network: each way is an answer. Where names count (`gamma_1, gamma_2` beside `ls2, ls1`), order
that runs against the numbers is not offered by itself: whether the order or the numbers hold is asked.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

from inspector.checkpoint.types import Shape
from inspector.keys.placing.hidden_words import NUMBER_WORDS
from inspector.keys.placing.tree import Leaf, Path, before_shared_end

Pairs = Sequence[tuple[Leaf, Leaf]]
# Of three parts there are six ways; more are no question for anybody.
_MOST_PARTS = 3
_LAST_NUMBER = re.compile(r"(.*?)([0-9]{1,3})([^0-9]*)")
_WORDS = {word: n for row in NUMBER_WORDS for n, word in enumerate(row, start=1)}
_NUMBER = re.compile(rf"(?<![0-9])[0-9]{{1,3}}(?![0-9])|(?<![A-Za-z])(?:{'|'.join(_WORDS)})(?![A-Za-z])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Way:
    """One way to read parts as the target's. id: of the answer. parts: by names. pairs: tensors and their places."""

    id: str
    parts: tuple[tuple[str, str], ...]
    pairs: tuple[tuple[Leaf, Leaf], ...]

    @property
    def says(self) -> str:
        return ", ".join(f"{one} is {other}" for one, other in self.parts)


@dataclass(frozen=True, slots=True)
class _Member:
    """A tensor of a part and its place. ours, theirs: the part's name on either side, with N for the layer that it is
    in; layer: its numbers there; rest: what both names end in."""

    leaf: Leaf
    place: Leaf
    ours: str
    theirs: str
    layer: tuple[str, ...]
    rest: Path

    @property
    def inside(self) -> Hashable:
        return self.layer, self.rest, _size(self.leaf.shape)


def _size(shape: Shape | None) -> Hashable:
    return tuple(n for n in shape or () if n != 1)


def _member(leaf: Leaf, place: Leaf) -> _Member:
    names = tuple(leaf.name.split(".")), tuple(place.name.split("."))
    ours, theirs = before_shared_end(names)
    rest = names[0][len(ours) :]
    if not ours or not theirs:
        ours, theirs, rest = *names, ()
    layers = [tuple(x for x in path[:-1] if x.isdecimal()) for path in (ours, theirs)]
    return _Member(leaf, place, _any_layer(ours), _any_layer(theirs), (*layers[0], "", *layers[1]), rest)


def _any_layer(path: Path) -> str:
    return ".".join([*("N" if x.isdecimal() else x for x in path[:-1]), path[-1]])


def other_ways(doubted: Pairs) -> list[Way]:
    """The ways to read a few parts of one content as each other's place, but for the given one; [] where there are too
    many parts, or one holds what the others do not."""
    parts: dict[tuple[str, str], dict[Hashable, _Member]] = {}
    for leaf, place in doubted:
        member = _member(leaf, place)
        parts.setdefault((member.ours, member.theirs), {})[member.inside] = member
        if len(parts) > _MOST_PARTS:
            return []
    ours, theirs = ([pair[n] for pair in parts] for n in (0, 1))
    alone = len(set(ours)) == len(ours) and len(set(theirs)) == len(theirs)
    held = list(parts.values())
    if not 2 <= len(parts) <= _MOST_PARTS or not alone or any(part.keys() != held[0].keys() for part in held):
        return []
    if sum(map(len, held)) != len(doubted):
        return []
    ways = []
    for order in permutations(range(len(held))):
        if order != tuple(range(len(held))):
            pairs = [(held[i][key].leaf, held[j][key].place) for i, j in enumerate(order) for key in held[i]]
            goes = [theirs[j] for j in order]
            ways.append(Way(_told(goes), tuple(zip(ours, goes, strict=True)), tuple(pairs)))
    return ways


def against_numbers(pairs: Pairs) -> tuple[list[tuple[Leaf, Leaf]], Way | None]:
    """(tensors in rows of parts whose numbers run against the target's, how their numbers would place them).

    The way is None where what the numbers would bring together is not of one content.
    """
    rows: dict[tuple[str, str], dict[tuple[str, ...], dict[tuple[int, int], list[_Member]]]] = {}
    for leaf, place in _in_unlike_rows(pairs):
        member = _member(leaf, place)
        one, other = _counted(member.ours), _counted(member.theirs)
        if one is not None and other is not None:
            row = rows.setdefault((one[0], other[0]), {}).setdefault(member.layer, {})
            row.setdefault((one[1], other[1]), []).append(member)
    doubted: list[tuple[Leaf, Leaf]] = []
    placed: list[tuple[Leaf, Leaf]] = []
    said: dict[str, str] = {}
    fits = True
    for layers in rows.values():
        for row in layers.values():
            numbers = sorted(row)
            if len({a for a, _ in row}) != len(row) or len({b for _, b in row}) != len(row):
                continue  # a number of more than these parts
            if all(a[1] < b[1] for a, b in pairwise(numbers)):
                continue
            members = [row[number] for number in numbers]
            goes = [row[number] for number in sorted(row, key=lambda number: number[1])]
            for here, there in zip(members, goes, strict=True):
                doubted += [(one.leaf, one.place) for one in here]
                places = {one.inside: one.place for one in there}
                fits = fits and {one.inside for one in here} == places.keys()
                if fits:
                    placed += [(one.leaf, places[one.inside]) for one in here]
                    said[here[0].ours] = there[0].theirs
    if not doubted or not fits:
        return doubted, None
    return doubted, Way("by-number", tuple(said.items()), tuple(placed))


def _in_unlike_rows(pairs: Pairs) -> list[tuple[Leaf, Leaf]]:
    """Those whose names, but for their numbers, others have as well, where the numbers of both sides do not rise
    together: a quick look at all of them."""
    forms: dict[tuple[str, str], list[tuple[Leaf, Leaf]]] = {}
    for pair in pairs:
        form = _NUMBER.sub("#", pair[0].name), _NUMBER.sub("#", pair[1].name)
        forms.setdefault(form, []).append(pair)
    found: list[tuple[Leaf, Leaf]] = []
    for (one, other), row in forms.items():
        if len(row) > 1 and "#" in one and "#" in other:
            numbers = sorted([(_numbers(leaf.name), _numbers(place.name)) for leaf, place in row])
            if any(a[1] > b[1] for a, b in pairwise(numbers)):
                found += row
    return found


def _numbers(name: str) -> list[int]:
    return [_WORDS.get(text.lower()) or int(text) for text in _NUMBER.findall(name)]


def _counted(part: str) -> tuple[str, int] | None:
    """('gamma_1') -> ('gamma_#', 1); first is a number, too."""
    found = _LAST_NUMBER.fullmatch(part)
    if found is not None and not _LAST_NUMBER.fullmatch(found[3]):
        return f"{found[1]}#{found[3]}", int(found[2])
    pieces = part.lower().replace(".", "_").split("_")
    at = [n for n, piece in enumerate(pieces) if piece in _WORDS]
    if len(at) != 1:
        return None
    return "_".join("#" if n == at[0] else piece for n, piece in enumerate(pieces)), _WORDS[pieces[at[0]]]


def _told(names: Sequence[str]) -> str:
    """By what tells the places apart: up,down."""
    paths = [name.split(".") for name in names]
    longest = max(map(len, paths))
    most = next((n for n in range(1, longest) if len({tuple(path[-n:]) for path in paths}) == len(paths)), longest)
    return ",".join(".".join(path[-most:]) for path in paths)
