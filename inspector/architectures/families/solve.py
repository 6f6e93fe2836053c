"""From a file's names and shapes to a family's settings, and from settings to names and shapes.

Settings are what a spec's options hold: one number per symbol, a tuple of numbers for a symbol with indices (in the
order of the indices; a single number where all are equal), True for the optional parts that are there.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from inspector.architectures.families.entry import Family, Repeat, Settings
from inspector.architectures.families.expressions import Ref, evaluate, parse, ref_of, solve
from inspector.architectures.families.template import BARE, Line, Template, form_of, places_of, template_of
from inspector.architectures.types import OptionValue, TargetTensor
from inspector.checkpoint.types import Shape
from inspector.errors import UsageError

MOST_PASSES = 8
MOST_TENSORS = 200_000  # of a target written by hand: counts are read from it

Values = dict[Ref, int]


@dataclass(frozen=True, slots=True)
class Expected:
    """One tensor that a family has under some settings. sizes: None where a symbol is unknown."""

    tensor: TargetTensor
    line: Line


def solve_family(family: Family, shapes: Mapping[str, Shape], *, bare: bool) -> Values:
    """What the names and shapes say about every symbol; symbols that nothing shows are left out.

    Where tensors disagree, the majority decides, and the first among equals. Linear in the file.
    """
    template = template_of(family, bare)
    seen = _sightings(template, shapes, {})
    values = _WithFlags({}, template.flags)
    _solve_counts(seen, values)
    if any(line.is_late for line in template.lines):
        seen = _sightings(template, shapes, values)
    _solve_flags(seen, values)
    alike = _alike(seen)
    for _ in range(MOST_PASSES):
        votes: dict[Ref, Counter[int]] = defaultdict(Counter)
        for (line, at, shape), times in alike:
            if any(evaluate(node, values, at) == 0 for node in line.conditions):
                continue
            for node, size in zip(line.sizes, shape, strict=True):
                found = solve(node, size, values, at)
                if found is not None:
                    votes[found[0]][found[1]] += times
        if not votes:
            break
        values.update({ref: counted.most_common(1)[0][0] for ref, counted in votes.items()})
    return values


def expand(family: Family, values: Mapping[Ref, int], *, bare: bool) -> Iterator[Expected]:
    """The tensors that follow from the values, in the order of the template; a size is None where it is unknown."""
    template = template_of(family, bare)
    known = _with_flags(values, template)
    settled = _Settled(known)
    for loops, lines in _runs(template.lines, 0):
        yield from _expand(loops, lines, settled, {}, 0)


def settings_of(family: Family, values: Mapping[Ref, int], *, bare: bool) -> dict[str, OptionValue]:
    """The values as a spec holds them."""
    template = template_of(family, bare)
    settings: dict[str, OptionValue] = {BARE: True} if bare and family.base else {}
    for name, (loops, fixed) in places_of(template).items():
        keys = _keys(loops, fixed, _with_flags(values, template))
        # Of parts that the file shows nothing of there are none, as far as it tells.
        absent = 0 if name in template.flags or (loops and name in template.counts) else None
        found = [values.get((name, key), absent) for key in keys]
        known = [value for value in found if value is not None]
        if not known:
            continue
        if len(known) < len(found):  # a layer of which the file holds nothing: what most of the others have
            usual = Counter(known).most_common(1)[0][0]
            known = [usual if value is None else value for value in found]
        if name in template.flags and len(set(known)) == 1:
            if known[0]:
                settings[name] = True
        elif len(set(known)) == 1:
            settings[name] = known[0]
        else:
            settings[name] = tuple(known)
    return settings


def values_of(family: Family, settings: Settings, *, bare: bool) -> Values:
    """The inverse of `settings_of`. Raises UsageError for a tuple of the wrong length and for no whole number."""
    template = template_of(family, bare)
    places = places_of(template)
    values: Values = {}
    # A count has fewer indices than what it counts, so that it is known when it is needed.
    for name in sorted(places, key=lambda name: len(places[name][0])):
        if name not in settings:
            continue
        loops, fixed = places[name]
        keys = _keys(loops, fixed, _with_flags(values, template))
        setting = settings[name]
        several = setting if isinstance(setting, tuple) else (setting,) * len(keys)
        if len(several) != len(keys):
            raise UsageError(f"{family.label} needs {len(keys)} values of {name}, not {len(several)}.")
        for key, value in zip(keys, several, strict=True):
            if isinstance(value, str | float):
                raise UsageError(f'{name} of {family.label} must be whole numbers, not "{value}".')
            values[name, key] = int(value)
    return values


def unsolved(
    family: Family, settings: Settings, *, bare: bool, expected: Iterable[Expected] | None = None
) -> tuple[str, ...]:
    """Names of the symbols that a target of this family still needs; optional parts are absent unless set.

    expected: what `expand` gives for these settings, where that is at hand.
    """
    template = template_of(family, bare)
    values = _with_flags(values_of(family, settings, bare=bare), template)
    places = places_of(template)
    needed: dict[str, None] = {}
    for line in template.lines:
        if all(evaluate(flag, values, {}) != 0 for flag in line.flags):
            needed.update(dict.fromkeys(name for loop in line.loops for name in _names(parse(str(loop.count)))))
    for one in islice(expand(family, values, bare=bare) if expected is None else expected, MOST_TENSORS):
        if one.tensor.shape is None:
            needed.update(dict.fromkeys(name for node in one.line.sizes for name in _names(node)))
    return tuple(name for name in needed if name in places and name not in settings and name not in template.flags)


def all_settings(family: Family, settings: Settings, *, bare: bool) -> dict[str, OptionValue]:
    """The settings with every optional part named and every indexed symbol as a tuple: what builders are given."""
    template = template_of(family, bare)
    values = values_of(family, settings, bare=bare)
    found: dict[str, OptionValue] = dict(settings)
    for name, (loops, fixed) in places_of(template).items():
        keys = _keys(loops, fixed, _with_flags(values, template))
        if loops or fixed - {()}:
            if name in settings or name in template.flags:
                found[name] = tuple(values.get((name, key), 0) for key in keys)
        elif name in template.flags:
            found[name] = bool(values.get((name, ()), 0))
    return found


# A line of the template, its indices, and the shape that the file has there.
_Sighting = tuple[Line, dict[str, int], Shape]


def _sightings(template: Template, shapes: Mapping[str, Shape], values: Mapping[Ref, int]) -> list[_Sighting]:
    found = []
    for name, shape in shapes.items():
        for line in template.by_form.get(form_of(name), ()):
            # Of another rank it is another kind of layer: "3.weight" of a convolution is none of a norm.
            at = line.place(name, values) if len(shape) == len(line.sizes) else None
            if at is not None:
                found.append((line, at, shape))
    return found


def _alike(seen: Iterable[_Sighting]) -> list[tuple[_Sighting, int]]:
    """The sightings that say the same, once, with how many they are, each where the first of them stands.

    Thousands of equal layers vote for one width; only where an index matters does each speak for itself.
    """
    found: list[tuple[_Sighting, int]] = []
    places: dict[tuple[Line, Shape], int] = {}
    for one in seen:
        line, _, shape = one
        if line.moving_sizes or line.moving_conditions:
            found.append((one, 1))
            continue
        place = places.setdefault((line, shape), len(found))
        if place == len(found):
            found.append((one, 1))
        else:
            found[place] = found[place][0], found[place][1] + 1
    return found


def _solve_counts(seen: Iterable[_Sighting], values: Values) -> None:
    indices: dict[Ref, set[int]] = defaultdict(set)
    for line, at, _ in seen:
        if line.is_counter:
            continue
        for loop, count_of in zip(line.loops, line.counts, strict=True):
            ref = _ref(count_of, at)
            if ref is not None:
                indices[ref].add(at[loop.index] - loop.start)
    for ref, found in indices.items():
        count = max(found) + 1
        # A number far from all others is no layer: the template would be written out that long.
        while count > 4 * len(found) + 16:
            found.remove(count - 1)
            count = max(found, default=-1) + 1
        values[ref] = count


def _solve_flags(seen: Iterable[_Sighting], values: Values) -> None:
    for line, at, shape in seen:
        # Two optional parts may share a name and differ in dimensions: a projection as a matrix or as a convolution.
        if not line.flags or line.is_counter or len(shape) != len(line.sizes):
            continue
        for flag in line.flags:
            ref = _ref(flag, at)
            if ref is not None:
                values[ref] = 1


def _ref(node: ast.expr, at: Mapping[str, int]) -> Ref | None:
    """The symbol that this expression is, None when it is a number."""
    if isinstance(node, ast.Name):
        return node.id, ()
    return ref_of(node, {}, at) if isinstance(node, ast.Subscript) else None


class _Settled:
    """What the values make of each line, worked out once where no index matters."""

    def __init__(self, values: Mapping[Ref, int]) -> None:
        self.values = values
        self._there: dict[Line, bool] = {}
        self._shapes: dict[Line, Shape | None] = {}

    def is_there(self, line: Line, at: Mapping[str, int]) -> bool:
        """Whether its optional parts are there and its conditions hold."""
        if line.moving_conditions:
            return self._holds(line, at)
        if line not in self._there:
            self._there[line] = self._holds(line, at)
        return self._there[line]

    def shape(self, line: Line, at: Mapping[str, int]) -> Shape | None:
        """None where a size is unknown."""
        if line.moving_sizes:
            return self._shape(line, at)
        if line not in self._shapes:
            self._shapes[line] = self._shape(line, at)
        return self._shapes[line]

    def _holds(self, line: Line, at: Mapping[str, int]) -> bool:
        return all(evaluate(node, self.values, at) for node in (*line.flags, *line.conditions))

    def _shape(self, line: Line, at: Mapping[str, int]) -> Shape | None:
        sizes = [evaluate(node, self.values, at) for node in line.sizes]
        known = tuple(size for size in sizes if size is not None)
        return known if len(known) == len(sizes) else None


def _expand(
    loops: tuple[Repeat, ...], lines: tuple[Line, ...], settled: _Settled, at: dict[str, int], depth: int
) -> Iterator[Expected]:
    if depth == len(loops):
        for line in lines:
            if settled.is_there(line, at):
                yield Expected(_tensor(line, settled, at), line)
        return
    loop = loops[depth]
    count = evaluate(parse(str(loop.count)), settled.values, at) or 0
    inside = tuple(_runs(lines, depth + 1))
    for index in range(loop.start, loop.start + count):
        inner = {**at, loop.index: index}
        for deeper, some in inside:
            yield from _expand(deeper, some, settled, inner, depth + 1)


def _runs(lines: tuple[Line, ...], depth: int) -> Iterator[tuple[tuple[Repeat, ...], tuple[Line, ...]]]:
    """Neighbouring lines that go through the same repeated part at this depth, with it; or through none."""
    start = 0
    for i in range(1, len(lines) + 1):
        if i == len(lines) or lines[i].loops[depth : depth + 1] != lines[start].loops[depth : depth + 1]:
            yield lines[start].loops[: depth + 1], lines[start:i]
            start = i


def _tensor(line: Line, settled: _Settled, at: Mapping[str, int]) -> TargetTensor:
    return TargetTensor(
        name=line.name(at, settled.values),
        shape=settled.shape(line, at),
        dtype=line.row.dtype,
        is_buffer=line.row.is_buffer,
    )


def _names(node: ast.expr) -> set[str]:
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}


def _keys(
    loops: tuple[Repeat, ...], fixed: frozenset[tuple[int, ...]], values: Mapping[Ref, int]
) -> list[tuple[int, ...]]:
    """All places of a symbol, in order."""
    found = set(fixed)
    rows: list[tuple[tuple[int, ...], dict[str, int]]] = [((), {})]
    for loop in loops:
        ranges = [range(loop.start, loop.start + (evaluate(parse(str(loop.count)), values, at) or 0)) for _, at in rows]
        if sum(map(len, ranges)) > MOST_TENSORS:
            raise UsageError(f"{sum(map(len, ranges)):,} repeated parts are more than any model has.")
        rows = [
            ((*key, index), {**at, loop.index: index})
            for (key, at), indices in zip(rows, ranges, strict=True)
            for index in indices
        ]
    if loops or not fixed:
        found.update(key for key, _ in rows)
    return sorted(found)


class _WithFlags(dict[Ref, int]):
    """Values in which the optional parts that nothing showed are absent."""

    def __init__(self, values: Mapping[Ref, int], flags: frozenset[str]) -> None:
        super().__init__(values)
        self.flags = flags

    def get(self, ref: Ref, default: int | None = None) -> int | None:  # type: ignore[override]
        if ref in self:
            return self[ref]
        return 0 if ref[0] in self.flags else default


def _with_flags(values: Mapping[Ref, int], template: Template) -> Mapping[Ref, int]:
    return values if isinstance(values, _WithFlags) else _WithFlags(values, template.flags)
