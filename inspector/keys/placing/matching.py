"""Two trees of modules walked down together: which module of the file is which of the target's, and where it is open.

At each place the modules below are compared by what they hold, the largest first. What only one of each side holds is
its counterpart; where several hold the same, their names decide, kind by kind, so that one mapping holds for all
layers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import combinations, product

from inspector.keys.placing.counting import Choice, Kinds, all_ways, counted, form_of, keeps_rows, runs_up
from inspector.keys.placing.grids import counted_alike
from inspector.keys.placing.parts import Part, plain
from inspector.keys.placing.rankings import ranked
from inspector.keys.placing.tree import Path
from inspector.keys.placing.words import ANY, OF_ONE_LAYER, Reading, read, relation, siblings_roles, trapped

# By how many points a name the best reading must be ahead of the next best.
LEAST_MARGIN = 1.0
# Points from which on a name alone finds its counterpart among unequal numbers of modules.
LEAST_ALONE = 2.5
_MOST_KINDS = 64
_NUMBER = re.compile(r"[0-9]+")
# Matrices of a gated MLP.
_GATED = 3
# A layer with what is beside it, in a Sequential or an adapter.
_MOST_IN_A_LAYER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterpart:
    """One module of the file and its place. points: by `relation`, of its name below what was agreed on before."""

    ours: Part
    theirs: Part
    points: float
    by_number: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Modules of one content whose names do not tell them apart. choices: the readings that are as good, best first.

    left_over: there is one reading alone, of modules that nothing else is left for and whose words are two.
    of_many: there are more readings than anybody reads, and this is the one that keeps both sides' order.
    """

    choices: tuple[Choice, ...]
    left_over: bool = False
    of_many: bool = False


@dataclass(slots=True)
class Mapping:
    """The whole mapping. margin: points by which the next best is worse, at the place where it is least."""

    pairs: list[Counterpart] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    ours: list[Part] = field(default_factory=list)
    theirs: list[Part] = field(default_factory=list)
    margin: float = float("inf")


class Matcher:
    """Walks both trees. ordered: whether the order of both sides may contradict the numbers."""

    def __init__(self, *, ordered: bool) -> None:
        self.ordered = ordered
        self.found = Mapping()

    def run(self, ours: Part, theirs: Part) -> Mapping:
        self.pair(plain(ours), plain(theirs), 0.0)
        return self.found

    def pair(self, ours: Part, theirs: Part, points: float, *, by_number: bool = False) -> None:
        """Two modules that are one: their own tensors, and what lies below."""
        pending = [(ours, theirs, points, by_number)]
        while pending:
            one, other, points, by_number = pending.pop()
            if one.leaves and not one.children and other.leaves and not other.children:
                self.found.pairs.append(Counterpart(ours=one, theirs=other, points=points, by_number=by_number))
                continue
            if one.children:
                self.found.pairs.append(Counterpart(ours=one, theirs=other, points=points, by_number=by_number))
            pending.extend(self._forest(_opened(one), _opened(other), len(one.path), len(other.path)))

    def _forest(
        self, ours: Iterable[Part], theirs: Iterable[Part], depth: int, other_depth: int
    ) -> list[tuple[Part, Part, float, bool]]:
        """Counterparts among these modules and what lies below those that have none as a whole."""
        waiting: dict[int, tuple[list[Part], list[Part]]] = {}
        sizes: list[int] = []

        def add(part: Part, side: int) -> None:
            if part.size not in waiting:
                waiting[part.size] = ([], [])
                heappush(sizes, -part.size)
            waiting[part.size][side].append(part)

        for part in ours:
            add(part, 0)
        for part in theirs:
            add(part, 1)
        made: list[tuple[Part, Part, float, bool]] = []
        left: tuple[list[Part], list[Part]] = ([], [])
        while sizes:
            both = waiting.pop(-heappop(sizes))
            by_bag: dict[int, tuple[list[Part], list[Part]]] = {}
            for side, parts in enumerate(both):
                for part in parts:
                    by_bag.setdefault(part.bag, ([], []))[side].append(part)
            for one, other in by_bag.values():
                if len(one) == len(other):
                    made += self._group(one, other, depth, other_depth)
                    continue
                rest: tuple[list[Part], list[Part]] = (one, other)
                if one and other:
                    some = self._some(one, other, depth, other_depth)
                    made += some
                    rest = (
                        [p for p in one if all(p is not x[0] for x in some)],
                        [p for p in other if all(p is not x[1] for x in some)],
                    )
                for side in (0, 1):
                    for part in rest[side]:
                        if part.children:
                            for below in part.below():
                                add(below, side)
                        else:
                            left[side].append(part)
        self.found.ours += left[0]
        self.found.theirs += left[1]
        return made

    def _group(
        self, ours: list[Part], theirs: list[Part], depth: int, other_depth: int
    ) -> list[tuple[Part, Part, float, bool]]:
        """Counterparts among as many modules of one content on both sides."""
        if len(ours) == 1:
            one, other = ours[0], theirs[0]
            return [(one, other, relation(_reading(ours, depth), _reading(theirs, other_depth)), False)]
        best: _Solution | None = None
        # Where nothing else tells, what one side alone writes behind all of its names is taken off as well.
        for literal, apart in product(((False, False), (True, True), (False, True), (True, False)), (False, True)):
            kinds = _kinds(ours, depth, literal[0]), _kinds(theirs, other_depth, literal[1])
            if sorted(map(len, kinds[0].values())) != sorted(map(len, kinds[1].values())):
                continue
            if len(kinds[0]) > _MOST_KINDS:
                continue
            if apart and _common_end(list(kinds[0])) == _common_end(list(kinds[1])):
                continue
            solution = self._solve(kinds[0], kinds[1], depth, other_depth, apart=apart)
            if best is None or (solution.margin >= LEAST_MARGIN > best.margin):
                best = solution
            if best.margin >= LEAST_MARGIN:
                break
        if best is None:
            self.found.ours += ours
            self.found.theirs += theirs
            return []
        if best.margin < LEAST_MARGIN:
            self.found.doubts.append(Doubt(choices=best.choices))
        else:
            self.found.margin = min(self.found.margin, best.margin)
        return [(a, b, points, True) for a, b, points in best.sure]

    def _some(
        self, ours: list[Part], theirs: list[Part], depth: int, other_depth: int
    ) -> list[tuple[Part, Part, float, bool]]:
        """Of unequal numbers of modules, those kinds that their names alone find in each other."""
        kinds, others = _kinds(ours, depth, True), _kinds(theirs, other_depth, True)
        if len(kinds) > _MOST_KINDS or len(others) > _MOST_KINDS:
            return []
        table = {
            (a, b): relation(_reading(kinds[a], depth), _reading(others[b], other_depth)) for a in kinds for b in others
        }
        found: list[tuple[Part, Part, float, bool]] = []
        for a in kinds:
            b = max(others, key=lambda other: table[a, other])
            rest = [table[a, other] for other in others if other != b] + [table[x, b] for x in kinds if x != a]
            points = table[a, b]
            if (
                points < LEAST_ALONE
                or points - max(rest, default=0.0) < LEAST_MARGIN
                or len(kinds[a]) != len(others[b])
            ):
                continue
            law = self._by_number(kinds[a], others[b])
            if law is not None:
                found += [(one, other, points, len(law) > 1) for one, other in law]
        return found

    def _solve(self, kinds: Kinds, others: Kinds, depth: int, other_depth: int, *, apart: bool) -> _Solution:
        """The best mapping of kinds, and how much worse the next best is, by name that it changes.

        apart: whether each side's common end is taken off, and not only what both have.
        """
        ours, theirs = list(kinds), list(others)
        ends = _common_end(ours), _common_end(theirs)
        ends = ends if apart else (min(ends), min(ends))
        readings = _readings([kinds[k] for k in ours], depth, ends[0])
        there = _readings([others[k] for k in theirs], other_depth, ends[1])
        if _only_counts(readings) and _has_gate(there):
            readings = [replace(reading, roles=frozenset(), number="") for reading in readings]
        elif _only_counts(there) and _has_gate(readings):
            there = [replace(reading, roles=frozenset(), number="") for reading in there]
        table = [
            [relation(readings[i], there[j]) if len(kinds[a]) == len(others[b]) else None for j, b in enumerate(theirs)]
            for i, a in enumerate(ours)
        ]
        ranking = ranked(table)
        if not ranking:
            return _Solution(margin=0.0)
        ranking = _with_equal_names(ranking, readings, there)
        (best, total), second = ranking[0], ranking[1] if len(ranking) > 1 else None
        if len(ours) > 1 and not keeps_rows(
            [
                (form_of(kinds[a], depth), form_of(others[theirs[j]], other_depth))
                for a, j in zip(ours, best, strict=True)
            ]
        ):
            return _Solution(margin=0.0, choices=all_ways(kinds, others))
        margin = float("inf")
        if second is not None:
            changed = sum(a != b for a, b in zip(best, second[0], strict=True))
            margin = (total - second[1]) / max(changed, 1)
        near = [order for order, x in ranking if order == best or total - x < LEAST_MARGIN * _changed(best, order)]
        for order in _as_silent(best, table):
            # That a name is none for the one place says nothing for the other.
            margin = 0.0
            if order not in near:
                near.append(order)
        sure: list[tuple[Part, Part, float]] = []
        choices: list[list[tuple[Part, Part]]] = [[] for _ in near]
        for i, a in enumerate(ours):
            fixed = all(order[i] == best[i] for order in near)
            points = table[i][best[i]] or 0.0
            law = self._by_number(kinds[a], others[theirs[best[i]]])
            if law is None or (len(law) > 1 and trapped(_last(kinds[a]), _last(others[theirs[best[i]]]))):
                margin = 0.0
                continue
            if fixed:
                sure += [(one, other, points) for one, other in law]
            else:
                for n, order in enumerate(near):
                    choices[n] += self._by_number(kinds[a], others[theirs[order[i]]]) or []
        return _Solution(margin=margin, sure=sure, choices=tuple(tuple(c) for c in choices if c))

    def _by_number(self, ours: list[Part], theirs: list[Part]) -> list[tuple[Part, Part]] | None:
        """Modules of one kind by the order of their numbers, None where the numbers are none."""
        if len(ours) == 1:
            return [(ours[0], theirs[0])]
        first, second = counted(ours), counted(theirs)
        if first is None or second is None:
            return None
        second = counted_alike(first, second)
        if second is None:
            return None
        if self.ordered and {runs_up(first), runs_up(second)} == {True, False}:
            return None
        return list(zip(first, second, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Solution:
    margin: float
    sure: Sequence[tuple[Part, Part, float]] = ()
    choices: tuple[Choice, ...] = ()


def _as_silent(best: Sequence[int], table: Sequence[Sequence[float | None]]) -> Iterator[tuple[int, ...]]:
    """The mapping with two kinds exchanged of which no name says anything for the places that they have in it."""
    silent = [i for i, j in enumerate(best) if (table[i][j] or 0.0) <= 0]
    for one, other in combinations(silent, 2):
        if table[one][best[other]] is not None and table[other][best[one]] is not None:
            order = list(best)
            order[one], order[other] = best[other], best[one]
            yield tuple(order)


def _opened(part: Part) -> list[Part]:
    return part.below() if part.children else [part]


def _changed(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


def _kinds(parts: Sequence[Part], depth: int, literal: bool) -> Kinds:
    """By name without numbers. literal: the last number stays, where it tells roles and not layers."""
    found: Kinds = {}
    for part in parts:
        path = [_NUMBER.sub(ANY, segment) for segment in part.path[depth:]]
        if literal:
            last = next((n for n in range(len(path) - 1, -1, -1) if ANY in path[n]), None)
            if last is not None:
                path[last] = part.path[depth + last]
        found.setdefault(tuple(path), []).append(part)
    return found


def _reading(parts: Sequence[Part], depth: int) -> Reading:
    """Of one kind: numbers that all of it share are part of its name. A norm has no role of a matrix."""
    path = parts[0].path
    if len(parts) > 1:
        columns = zip(*(part.path for part in parts), strict=True)
        path = tuple(s[0] if len(set(s)) == 1 else _NUMBER.sub(ANY, s[0]) for s in columns)
    made = read(path, depth)
    if len(parts[0].children) > _MOST_IN_A_LAYER:
        # What holds several layers has the role of none: attn.linears is no output of an attention.
        return replace(made, roles=made.roles - OF_ONE_LAYER) if made.roles & OF_ONE_LAYER else made
    weight = parts[0].leaves.get("weight")
    if not made.roles or weight is None or weight.shape is None:
        return made
    is_norm = len(weight.shape) == 1
    roles = frozenset([role for role in made.roles if ("norm" in role) is is_norm])
    return replace(made, roles=roles) if roles != made.roles else made


def _readings(kinds: Sequence[list[Part]], depth: int, end: int) -> list[Reading]:
    """end: how many of the last segments all of both sides have in common; the words before them tell them apart."""
    made = [_reading(parts, depth) for parts in kinds]
    if end:
        short = [[Part(part.path[:-end], part.first, leaves=part.leaves) for part in parts] for parts in kinds]
        told = [_reading(parts, depth) for parts in short]
        made = [replace(shorter, roles=shorter.roles or whole.roles) for whole, shorter in zip(made, told, strict=True)]
    roles = siblings_roles([_last(parts) for parts in kinds])
    return [replace(r, roles=frozenset({role})) if role else r for r, role in zip(made, roles, strict=True)]


def _only_counts(readings: Sequence[Reading]) -> bool:
    """Whether three names are one word and a number."""
    return len(readings) == _GATED and len({reading.words for reading in readings}) == 1


def _has_gate(readings: Sequence[Reading]) -> bool:
    """Whether one of them is a gate: of linear1, linear2 and linear3 no convention tells which."""
    return any("gate" in reading.words for reading in readings)


def _common_end(kinds: Sequence[Path]) -> int:
    """How many last segments are equal in all of these names, of which a segment is left."""
    most = min(map(len, kinds)) - 1 if len(kinds) > 1 else 0
    return next((n for n in range(most) if len({kind[-1 - n] for kind in kinds}) > 1), max(most, 0))


def _with_equal_names(
    ranking: Sequence[tuple[tuple[int, ...], float]], ours: Sequence[Reading], theirs: Sequence[Reading]
) -> list[tuple[tuple[int, ...], float]]:
    """Without the orders in which a name is another that has the same words as one other alone, where the best has it
    so: of k, v, r and key, value, receptance v is the value, however little r says."""
    best = ranking[0][0]
    own = Counter((reading.words, reading.above, reading.number) for reading in ours)
    there = Counter((reading.words, reading.above, reading.number) for reading in theirs)
    fixed = []
    for i, j in enumerate(best):
        key = (ours[i].words, ours[i].above, ours[i].number)
        if (
            ours[i].words
            and key == (theirs[j].words, theirs[j].above, theirs[j].number)
            and own[key] == there[key] == 1
        ):
            fixed.append(i)
    return [x for x in ranking if all(x[0][i] == best[i] for i in fixed)]


def _last(parts: Sequence[Part]) -> str:
    """The last segment of a kind, with its number where all share it."""
    ends = {part.path[-1] if part.path else "" for part in parts}
    return ends.pop() if len(ends) == 1 else _NUMBER.sub(ANY, next(iter(ends)))
