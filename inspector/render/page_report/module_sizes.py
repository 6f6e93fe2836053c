"""Bytes by module as an icicle: the whole model at the left, its modules beside it from top to bottom in the file's
order, theirs beside those; heights are bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from inspector.params.report import ModuleCount
from inspector.render.page_report import svg
from inspector.units import counted, human_bytes, human_count, human_share, shorten_apart, shorten_middle

_WIDTH, _HEIGHT = 760.0, 380.0
_COLUMNS = 4
# A box without room for a line of text has no name, one without room for a line of pixels joins its neighbours.
_NAMED, _LEAST = 12.0, 3.0
_LETTER = 6.2
_LONGEST = 19  # letters of a name beside its bytes
# Above it white text could not be read.
_BRIGHTEST = 0.42
_BUNDLE = 14.0  # of small neighbours
_JOINED = "rgba(128,128,128,0.35)"


@dataclass(slots=True, eq=False)
class _Module:
    """A module of the picture. label: its name below its parent. nbytes: with everything in it."""

    path: str
    label: str
    nbytes: int
    says: str
    children: list[_Module] = field(default_factory=list)


def module_sizes(modules: Sequence[ModuleCount]) -> str:
    """The figure; "" where nothing takes any bytes."""
    root = _tree(modules)
    if root is None or root.nbytes <= 0:
        return ""
    parts: list[str] = []
    _draw(root, 0, 0.0, _HEIGHT, root.nbytes, parts)
    return svg.figure(parts, width=_WIDTH, height=_HEIGHT, says="Bytes by module")


def _tree(modules: Sequence[ModuleCount]) -> _Module | None:
    made: dict[str, _Module] = {}
    for count in modules:
        nbytes = count.parameter_nbytes + count.buffer_nbytes
        kind = f" {count.kind.rpartition('.')[2]}" if count.kind else ""
        elements = human_count(count.parameters + count.buffers)
        says = f"{count.path or 'whole model'}{kind}: {elements} elements, {human_bytes(nbytes)}"
        made[count.path] = _Module(count.path, count.path.rpartition(".")[2] or "whole model", nbytes, says)
    if "" not in made:
        return None
    for path, module in made.items():
        if path:
            above = path.rpartition(".")[0]
            while above not in made:
                above = above.rpartition(".")[0]
            made[above].children.append(module)
    return _inmost(made[""])


def _inmost(module: _Module) -> _Module:
    """Without what holds nothing but one other module: its name joins the other's."""
    while len(module.children) == 1 and module.children[0].nbytes == module.nbytes and module.children[0].children:
        inner = module.children[0]
        if module.path:
            module.label, module.says = f"{module.label}.{inner.label}", inner.says
        else:
            for child in inner.children:
                child.label = f"{inner.label}.{child.label}"
        module.children = inner.children
    if any(len(child.label) > _LONGEST for child in module.children):
        labels = shorten_apart([child.label for child in module.children], _LONGEST)
        for child, label in zip(module.children, labels, strict=True):
            child.label = label
    for child in module.children:
        _inmost(child)
    return module


def _draw(module: _Module, column: int, top: float, height: float, whole: int, parts: list[str]) -> None:
    wide = _WIDTH / _COLUMNS
    share = module.nbytes / whole
    red, green, blue = svg.viridis(_BRIGHTEST * share**0.5)
    label = ""
    if height >= _NAMED:
        size = human_bytes(module.nbytes)
        room = int((wide - 14) / _LETTER)
        name = shorten_middle(module.label, max(6, room - len(size) - 2))
        x, y = column * wide + 5, top + min(height / 2 + 4, 15)
        label = svg.text(x, y, name, fill="#fff")
        label += svg.text((column + 1) * wide - 7, y, size, fill="#fff", anchor="end")
    title = f"{module.says}, {human_share(share)}"
    parts.append(
        svg.rectangle(
            column * wide, top, wide - 1, max(height - 1, 1), f"rgb({red},{green},{blue})", title=title, inside=label
        )
    )
    if column + 1 == _COLUMNS or module.nbytes <= 0:
        return
    at = top
    for children, tall in _rows(module, height):
        if len(children) == 1 and tall >= _LEAST:
            _draw(children[0], column + 1, at, tall, whole, parts)
        else:
            parts.append(_bundle(children, column + 1, at, tall))
        at += tall


def _rows(module: _Module, height: float) -> list[tuple[list[_Module], float]]:
    """The children with their heights, in their order; neighbours that are too small to be seen share a row."""
    rows: list[tuple[list[_Module], float]] = []
    small: list[_Module] = []
    joined = 0.0
    for child in module.children:
        tall = height * child.nbytes / module.nbytes
        if small and (tall >= _LEAST or joined >= _BUNDLE):
            rows.append((small, joined))
            small, joined = [], 0.0
        if tall >= _LEAST:
            rows.append(([child], tall))
        else:
            small.append(child)
            joined += tall
    if small and joined < _LEAST and rows and rows[-1][1] < _BUNDLE + _LEAST:
        # The rest of a long row of small ones: seen with those before it or not at all.
        before, tall = rows.pop()
        small, joined = [*before, *small], tall + joined
    return [*rows, (small, joined)] if small else rows


def _bundle(modules: Sequence[_Module], column: int, top: float, height: float) -> str:
    wide = _WIDTH / _COLUMNS
    size = human_bytes(sum(module.nbytes for module in modules))
    first, last = modules[0].label, modules[-1].label
    names = f"{first} to {last}" if len(modules) > 1 else first
    label = ""
    if height >= _NAMED:
        room = int((wide - 14) / _LETTER) - len(size) - 2
        y = top + min(height / 2 + 4, 15)
        label = svg.text(column * wide + 5, y, shorten_middle(names, max(6, room)))
        label += svg.text((column + 1) * wide - 7, y, size, anchor="end")
    title = f"{counted(len(modules), 'small module')}, {names}: {size}"
    # Hairlines are not seen: what has no height at all is left out.
    tall = max(height - 1, 0.0)
    return svg.rectangle(column * wide, top, wide - 1, tall, _JOINED, title=title, inside=label) if tall else ""
