"""A family's template, prepared for reading: which rows a name could be, and where each symbol stands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from inspector.architectures.families.entry import Family, Optional, Part, Repeat, Row, When
from inspector.architectures.families.expressions import Ref, evaluate, parse, solve, symbols_in
from inspector.checkpoint.bookkeeping import is_bookkeeping

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
    indices, counts: of the loops, in their order. plain: the numbers where each is an index or written out, else None.
    is_counter: it is bookkeeping. moving_sizes, moving_conditions: whether sizes, or flags and conditions, follow an
    index; what does not is the same for all tensors of the line, and worked out once.
    """

    row: Row
    form: str
    pieces: tuple[str, ...]
    numbers: tuple[ast.expr, ...]
    sizes: tuple[ast.expr, ...]
    loops: tuple[Repeat, ...]
    flags: tuple[ast.expr, ...]
    conditions: tuple[ast.expr, ...]
    indices: tuple[str, ...]
    counts: tuple[ast.expr, ...]
    plain: tuple[str | int, ...] | None
    is_counter: bool
    moving_sizes: bool
    moving_conditions: bool

    @property
    def is_late(self) -> bool:
        """Whether its name follows from a count, so that it is found only once the counts are known."""
        return any(name not in self.indices for number in self.numbers for name, _ in symbols_in(number))

    def place(self, name: str, values: Mapping[Ref, int]) -> dict[str, int] | None:
        """The indices under which this row has that name, None when it cannot have it.

        values: for rows whose name follows a count ("features.{blocks+1}.weight").
        """
        at: dict[str, int] = {}
        written = _DIGITS.findall(name)
        if self.plain is not None:
            return self._placed(written, self.plain)
        for digits, number in zip(written, self.numbers, strict=True):
            value = _whole(digits)
            if value is None:
                return None
            known = evaluate(number, values, at)
            if known is not None:
                if known != value:
                    return None
                continue
            found = solve(number, value, values, at)
            if found is None or found[0][0] not in self.indices:
                return None
            at[found[0][0]] = found[1]
        return self._checked(at)

    def _placed(self, written: Sequence[str], plain: Sequence[str | int]) -> dict[str, int] | None:
        """The same where each number is an index or written out, without an expression to solve."""
        at: dict[str, int] = {}
        for digits, number in zip(written, plain, strict=True):
            value = _whole(digits)
            if value is None or value != (at.setdefault(number, value) if isinstance(number, str) else number):
                return None
        return self._checked(at)

    def _checked(self, at: dict[str, int]) -> dict[str, int] | None:
        if len(at) != len(self.indices) or any(at[loop.index] < loop.start for loop in self.loops):
            return None
        return at

    def name(self, at: Mapping[str, int], values: Mapping[Ref, int]) -> str:
        """The name for these indices."""
        text = self.pieces[0]
        if self.plain is not None:
            for index, piece in zip(self.plain, self.pieces[1:], strict=True):
                text += f"{at[index] if isinstance(index, str) else index}{piece}"
            return text
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


def _whole(digits: str) -> int | None:
    """The number, None where it has a zero in front or more digits than any layer's."""
    value = int(digits) if len(digits) < 10 else -1
    return value if str(value) == digits else None


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
    indices = tuple(dict.fromkeys(loop.index for loop in loops))
    sizes = tuple(parse(str(size)) for size in row.shape)
    return Line(
        row=row,
        form="#".join(pieces),
        pieces=tuple(pieces),
        numbers=tuple(numbers),
        sizes=sizes,
        loops=loops,
        flags=flags,
        conditions=conditions,
        indices=indices,
        counts=tuple(parse(str(loop.count)) for loop in loops),
        plain=_plain(numbers, indices),
        is_counter=is_bookkeeping(row.name),
        moving_sizes=_moves(sizes, indices),
        moving_conditions=_moves((*flags, *conditions), indices),
    )


def _plain(numbers: Sequence[ast.expr], indices: Sequence[str]) -> tuple[str | int, ...] | None:
    """Indices and numbers as they stand, None where one is to be computed."""
    found: list[str | int] = []
    for number in numbers:
        if isinstance(number, ast.Name) and number.id in indices:
            found.append(number.id)
        elif isinstance(number, ast.Constant) and isinstance(number.value, int):
            found.append(number.value)
        else:
            return None
    return tuple(found)


def _moves(nodes: Sequence[ast.expr], indices: Sequence[str]) -> bool:
    """Whether an index stands in one of them, inside brackets or outside."""
    return any(isinstance(part, ast.Name) and part.id in indices for node in nodes for part in ast.walk(node))


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
