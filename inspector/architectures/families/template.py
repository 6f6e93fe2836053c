"""A family's template, prepared for reading: which rows a name could be, and where each symbol stands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from inspector.architectures.families.entry import Family, Optional, Part, Repeat, Row, When
from inspector.architectures.families.expressions import Ref, evaluate, parse, solve, symbols_in

_BRACES = re.compile(r"\{([^}]*)\}")
_DIGITS = re.compile(r"\d+")

BARE = "bare"  # the flag of files that are spelled without the family's base


def form_of(name: str) -> str:
    """A name with every run of digits as "#": what rows are looked up by."""
    return _DIGITS.sub("#", name)


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A row with everything around it.

    form: its name with "#" for every number. numbers: per "#", the expression that stands there.
    pieces: the name around the numbers. sizes: the shape's expressions. loops: the repeated parts around it, from the
    outside in. flags, conditions: of the optional parts around it.
    """

    row: Row
    form: str
    pieces: tuple[str, ...]
    numbers: tuple[ast.expr, ...]
    sizes: tuple[ast.expr, ...]
    loops: tuple[Repeat, ...]
    flags: tuple[ast.expr, ...]
    conditions: tuple[ast.expr, ...]

    @property
    def is_late(self) -> bool:
        """Whether its name follows from a count, so that it is found only once the counts are known."""
        indices = {loop.index for loop in self.loops}
        return any(name not in indices for number in self.numbers for name, _ in symbols_in(number))

    def place(self, name: str, values: Mapping[Ref, int]) -> dict[str, int] | None:
        """The indices under which this row has that name, None when it cannot have it.

        values: for rows whose name follows a count ("features.{blocks+1}.weight").
        """
        at: dict[str, int] = {}
        indices = {loop.index for loop in self.loops}
        for digits, number in zip(_DIGITS.findall(name), self.numbers, strict=True):
            value = int(digits) if len(digits) < 10 else -1
            if str(value) != digits:
                return None
            known = evaluate(number, values, at)
            if known is not None:
                if known != value:
                    return None
                continue
            found = solve(number, value, values, at)
            if found is None or found[0][0] not in indices:
                return None
            at[found[0][0]] = found[1]
        if len(at) != len(indices) or any(at[loop.index] < loop.start for loop in self.loops):
            return None
        return at

    def name(self, at: Mapping[str, int], values: Mapping[Ref, int]) -> str:
        """The name for these indices."""
        text = self.pieces[0]
        for number, piece in zip(self.numbers, self.pieces[1:], strict=True):
            text += f"{evaluate(number, values, at)}{piece}"
        return text


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A family's lines, in order, and the same by form.

    flags: names of its optional parts. counts: names of the symbols that say how often parts are repeated.
    """

    lines: tuple[Line, ...]
    by_form: Mapping[str, tuple[Line, ...]]
    flags: frozenset[str]
    counts: frozenset[str]


@lru_cache(maxsize=512)
def template_of(family: Family, bare: bool) -> Template:
    """The template, spelled with the family's base or without."""
    lines = tuple(_lines(family.rows, "" if bare else family.base, (), (), ()))
    by_form: dict[str, list[Line]] = {}
    for line in lines:
        by_form.setdefault(line.form, []).append(line)
    flags = frozenset(name for line in lines for flag in line.flags for name, _ in symbols_in(flag))
    repeated = {parse(str(loop.count)) for line in lines for loop in line.loops}
    counts = frozenset(name for count in repeated for name, _ in symbols_in(count))
    return Template(lines, {form: tuple(found) for form, found in by_form.items()}, flags, counts)


def _lines(
    parts: Sequence[Part],
    base: str,
    loops: tuple[Repeat, ...],
    flags: tuple[ast.expr, ...],
    conditions: tuple[ast.expr, ...],
) -> Iterator[Line]:
    for part in parts:
        match part:
            case Row():
                yield _line(part, base, loops, flags, conditions)
            case Repeat():
                yield from _lines(part.rows, base, (*loops, part), flags, conditions)
            case Optional():
                yield from _lines(part.rows, base, loops, (*flags, parse(part.flag)), conditions)
            case When():
                yield from _lines(part.rows, base, loops, flags, (*conditions, parse(part.condition)))


def _line(
    row: Row,
    base: str,
    loops: tuple[Repeat, ...],
    flags: tuple[ast.expr, ...],
    conditions: tuple[ast.expr, ...],
) -> Line:
    name = base + row.name[1:] if row.name.startswith("@") else row.name
    # Literal digits are numbers too, so that "conv1" and "conv2" have one form.
    pieces, numbers = [""], []
    for i, text in enumerate(_BRACES.split(name)):
        if i % 2:
            numbers.append(parse(text))
            pieces.append("")
            continue
        rest = 0
        for digits in _DIGITS.finditer(text):
            pieces[-1] += text[rest : digits.start()]
            numbers.append(parse(str(int(digits.group()))))
            pieces.append("")
            rest = digits.end()
        pieces[-1] += text[rest:]
    return Line(
        row=row,
        form="#".join(pieces),
        pieces=tuple(pieces),
        numbers=tuple(numbers),
        sizes=tuple(parse(str(size)) for size in row.shape),
        loops=loops,
        flags=flags,
        conditions=conditions,
    )


@lru_cache(maxsize=512)
def places_of(template: Template) -> Mapping[str, tuple[tuple[Repeat, ...], frozenset[tuple[int, ...]]]]:
    """Symbol -> the repeated parts whose indices it carries, and the places of it that are written as numbers.

    A symbol without indices carries (). Only plain indices count ("width[s]", "width[0]"): "width[s-1]" names no new
    place.
    """
    loops: dict[str, tuple[Repeat, ...]] = {}
    fixed: dict[str, set[tuple[int, ...]]] = {}
    for line in template.lines:
        by_index = {loop.index: loop for loop in line.loops}
        counts = [parse(str(loop.count)) for loop in line.loops]
        for node in (*counts, *line.flags, *line.conditions, *line.sizes):
            for name, indices in symbols_in(node):
                if name in by_index:
                    continue
                names = [index.id for index in indices if isinstance(index, ast.Name) and index.id in by_index]
                if len(names) == len(indices):
                    loops.setdefault(name, tuple(by_index[index] for index in names))
                elif all(isinstance(index, ast.Constant) for index in indices):
                    fixed.setdefault(name, set()).add(tuple(evaluate(index, {}, {}) or 0 for index in indices))
    return {name: (loops.get(name, ()), frozenset(fixed.get(name, ()))) for name in {**loops, **fixed}}
