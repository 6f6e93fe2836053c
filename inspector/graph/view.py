"""A drawing opened to a depth: which boxes are in sight, inside which, and the edges between them."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.graph.boxes import Drawing
from inspector.graph.nesting import Shape
from inspector.graph.types import Box


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A box in sight. inside: the path of the opened box around it, "" for the whole. is_open: its children follow."""

    box: Box
    inside: str
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """boxes: each before its children, in the order in which they run. edges: (source, target, shape), by paths of
    boxes that are closed."""

    boxes: tuple[Seen, ...]
    edges: tuple[tuple[str, str, Shape], ...]


def view(drawing: Drawing, depth: int | None = None) -> View:
    """The drawing with modules opened to a depth; all of them for None. What only groups a row counts as none."""
    seen: list[Seen] = []
    shown_by: dict[str, str] = {}
    todo = [(child, "", 1, "") for child in reversed(drawing.box.children)]
    while todo:
        box, inside, level, closed = todo.pop()
        is_section = not box.node and not box.module
        is_open = not closed and bool(box.children) and (depth is None or level <= depth - (not is_section))
        if not closed:
            seen.append(Seen(box=box, inside=inside, is_open=is_open))
        closed = closed or ("" if is_open else box.path)
        if not box.children:
            shown_by[box.path] = closed
        below = level if is_section else level + 1
        todo += [(child, box.path, below, closed) for child in reversed(box.children)]
    edges: dict[tuple[str, str], Shape] = {}
    for edge in drawing.edges:
        pair = (shown_by[edge.source], shown_by[edge.target])
        if pair[0] != pair[1]:
            edges.setdefault(pair, edge.shape)
    return View(boxes=tuple(seen), edges=tuple((*pair, shape) for pair, shape in edges.items()))
