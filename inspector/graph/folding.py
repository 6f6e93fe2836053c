"""Equal neighbours in a row: which children of a module repeat what stands before them.

A run is of units of one to 128 children: a block of a graph without modules is as many operators. Units are equal in
what they are, in the arrows within them and from each to the next; what else goes in goes into all of them from the
same place, and what else goes out goes from all of them to the same place. Only the first may take its way in from
elsewhere, and only the last may have a way out of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from inspector.graph.nesting import Shape

_LONGEST_UNIT = 128
# Up to here a unit may be of equal halves, which arrows tell apart.
_ALWAYS_TRIED = 4
# So many of its own kind are looked at behind each child.
_MOST_LOOKED_AT = 32
# From a place among the children, or a node outside.
_Origin = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Run:
    """count units of `unit` children each, from the place `start` on."""

    start: int
    unit: int
    count: int

    @property
    def end(self) -> int:
        """One past its last child."""
        return self.start + self.unit * self.count


@dataclass(frozen=True, slots=True)
class Row:
    """Children in their order. keys: equal for what is drawn alike. before, after: arrows by the place of either end,
    with shape and number of tensors. sources, targets: by place, what comes from or goes outside of the parent."""

    keys: Sequence[bytes]
    before: Mapping[int, Mapping[int, tuple[Shape, int]]]
    after: Mapping[int, Mapping[int, tuple[Shape, int]]]
    sources: Sequence[set[tuple[int, Shape]]]
    targets: Sequence[set[int]]


def find_runs(row: Row) -> list[Run]:
    """The runs of two units and more, from the front; of several that begin at one place the longest."""
    found: list[Run] = []
    alike = _alike(row.keys)
    at, n = 0, len(row.keys)
    while at < n - 1:
        best: Run | None = None
        for unit in _units(row.keys, alike, at):
            count = _count(row, at, unit)
            if count > 1 and (best is None or unit * count > best.end - best.start):
                best = Run(at, unit, count)
        if best is None:
            at += 1
        else:
            found.append(best)
            at = best.end
    return found


def _alike(keys: Sequence[bytes]) -> tuple[list[int], list[int]]:
    """For each place, where its key comes next (0: nowhere), and how many of the same follow it without a gap, it
    included."""
    following, length = [0] * len(keys), [1] * len(keys)
    last: dict[bytes, int] = {}
    for at in range(len(keys) - 1, -1, -1):
        following[at] = last.get(keys[at], 0)
        if following[at] == at + 1:
            length[at] = length[at + 1] + 1
        last[keys[at]] = at
    return following, length


def _units(keys: Sequence[bytes], alike: tuple[list[int], list[int]], at: int) -> Iterator[int]:
    """The lengths after which the keys from a place on come again at once, the shortest first."""
    following, length = alike
    tried: list[int] = []
    place = at
    for _ in range(_MOST_LOOKED_AT):
        place = following[place]
        unit = place - at
        if not place or unit > _LONGEST_UNIT or place + unit > len(keys):
            return
        # Equal ones that are no run stay apart, not in pairs.
        if (unit == 1 or length[at] < unit) and keys[at:place] == keys[place : place + unit]:
            of_shorter = any(unit % one == 0 and keys[at : place - one] == keys[at + one : place] for one in tried)
            if unit <= _ALWAYS_TRIED or not of_shorter:
                tried.append(unit)
                yield unit
        if unit == 1 and length[at] > _LONGEST_UNIT:
            return


def _count(row: Row, start: int, unit: int) -> int:
    """How many equal units follow each other from a place on; 1 for none."""
    keys = list(row.keys[start : start + unit])
    inner = _inner(row, start, unit)
    others = _others_out(row, start, unit)
    link: object = None
    common: object = None
    count = 1
    while (at := start + count * unit) + unit <= len(row.keys):
        if list(row.keys[at : at + unit]) != keys or _inner(row, at, unit) != inner:
            break
        linked, came, inside = _arrivals(row, start, at, unit)
        if not linked or inside:
            break
        if count == 1:
            first = _arrivals(row, start, start, unit)[1]
            if not came <= first or _shapes_in(row, start, unit) != _shapes_in(row, at, unit):
                break
            link, common = linked, came
        elif linked != link or came != common or _others_out(row, at - unit, unit) != others:
            break
        count += 1
    if count > 1 and not others <= _all_out(row, start + (count - 1) * unit, unit):
        count -= 1
    return count


def _inner(row: Row, at: int, unit: int) -> dict[tuple[int, int], tuple[Shape, int]]:
    if unit == 1:
        return {}
    return {
        (s - at, t - at): arrow
        for s in range(at, at + unit)
        for t, arrow in row.after.get(s, {}).items()
        if t < at + unit
    }


def _arrivals(
    row: Row, start: int, at: int, unit: int
) -> tuple[dict[tuple[int, int], tuple[Shape, int]], set[tuple[int, _Origin]], bool]:
    """(arrows from the unit before, what comes from elsewhere, whether some of it comes from further up the run)."""
    linked: dict[tuple[int, int], tuple[Shape, int]] = {}
    came: set[tuple[int, _Origin]] = set()
    inside = False
    for t in range(at, at + unit):
        for s, arrow in row.before.get(t, {}).items():
            if s >= at:
                continue
            if s >= at - unit and at > start:
                linked[s - (at - unit), t - at] = arrow
            elif s >= start:
                inside = True
            else:
                came.add((t - at, ("child", s)))
        came.update((t - at, ("node", s)) for s, _ in row.sources[t])
    return linked, came, inside


def _shapes_in(row: Row, at: int, unit: int) -> set[tuple[int, Shape]]:
    found = {(t - at, shape) for t in range(at, at + unit) for _, shape in row.sources[t]}
    for t in range(at, at + unit):
        found.update((t - at, shape) for s, (shape, _) in row.before.get(t, {}).items() if s < at)
    return found


def _all_out(row: Row, at: int, unit: int) -> set[tuple[int, _Origin]]:
    found = {(s - at, ("node", t)) for s in range(at, at + unit) for t in row.targets[s]}
    for s in range(at, at + unit):
        found.update((s - at, ("child", t)) for t in row.after.get(s, {}) if t >= at + unit)
    return found


def _others_out(row: Row, at: int, unit: int) -> set[tuple[int, _Origin]]:
    """What goes out elsewhere than to the next unit."""
    return {
        (offset, (what, t)) for offset, (what, t) in _all_out(row, at, unit) if what == "node" or t >= at + 2 * unit
    }
