"""A drawing as SVG, without a browser: boxes in boxes, in rows by the longest way that leads to each.

For the command line; the app lays out its drawing with crossings in mind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from inspector.graph.types import Box
from inspector.render.graph_files.words import box_words, shape_words

_LETTER, _LINE, _PAD, _GAP, _ROW = 7.0, 16.0, 12.0, 18.0, 36.0
_MOST_BOXES = 4_000


@dataclass(slots=True, eq=False)
class _Placed:
    """A box with its size and, within its parent, its place. title: height of its lines of text."""

    box: Box
    lines: tuple[str, ...]
    width: float = 0.0
    height: float = 0.0
    x: float = 0.0
    y: float = 0.0
    title: float = 0.0
    ranks: list[int] = field(default_factory=list)
    children: list[_Placed] = field(default_factory=list)


def as_svg(box: Box, depth: int | None = None) -> str:
    """The network opened to a depth; no deeper than some thousand boxes go."""
    depth = _bearable(box, depth)
    order: list[_Placed] = []
    root = _Placed(box, ())
    todo = [(root, 0)]
    while todo:
        placed, level = todo.pop()
        order.append(placed)
        is_section = not placed.box.node and not placed.box.module and level > 0
        if level == 0 or depth is None or level < depth or (is_section and level <= depth):
            placed.children = [_Placed(c, tuple(filter(None, box_words(c)))) for c in placed.box.children]
            todo += [(child, level if is_section else level + 1) for child in placed.children]
    for placed in reversed(order):
        _arrange(placed)
    root.x = root.y = 0.0
    width, height = round(root.width), round(root.height)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        '<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    drawn = [(root, 0.0, 0.0)]
    while drawn:
        placed, left, top = drawn.pop()
        x, y = left + placed.x, top + placed.y
        if placed is not root:
            parts.append(_rectangle(placed, x, y))
        parts += _arrows(placed, x, y)
        drawn += [(child, x, y) for child in placed.children]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bearable(box: Box, depth: int | None) -> int | None:
    """The depth that is asked for, or the deepest of not too many boxes."""
    level, shown, row = 0, 0, list(box.children)
    while row and (depth is None or level < depth):
        shown += len(row)
        if shown > _MOST_BOXES:
            return max(1, level)
        row = [child for parent in row for child in parent.children]
        level += 1
    return depth


def _arrange(placed: _Placed) -> None:
    """Its size, and the places of its children, whose sizes are known."""
    text = max((len(line) for line in placed.lines), default=0) * _LETTER
    placed.title = len(placed.lines) * _LINE + _PAD
    if not placed.children:
        placed.width, placed.height = max(text + 2 * _PAD, 60.0), placed.title + _PAD / 2
        return
    placed.ranks = [0] * len(placed.children)
    for edge in sorted(placed.box.edges, key=lambda edge: edge.source):
        # Children stand in the order in which they run, so that a source has its row.
        placed.ranks[edge.target] = max(placed.ranks[edge.target], placed.ranks[edge.source] + 1)
    rows: list[list[_Placed]] = [[] for _ in range(max(placed.ranks) + 1)]
    for child, rank in zip(placed.children, placed.ranks, strict=True):
        rows[rank].append(child)
    widths = [sum(child.width for child in row) + _GAP * (len(row) - 1) for row in rows]
    long = sum(placed.ranks[edge.target] - placed.ranks[edge.source] > 1 for edge in placed.box.edges)
    aside = min(long, 6) * 10.0
    placed.width = max(*widths, text) + 2 * _PAD + aside
    y = placed.title + _PAD
    for row, width in zip(rows, widths, strict=True):
        x = (placed.width - aside - width) / 2
        for child in row:
            child.x, child.y = x, y
            x += child.width + _GAP
        y += max(child.height for child in row) + _ROW
    placed.height = y - _ROW + _PAD


def _rectangle(placed: _Placed, x: float, y: float) -> str:
    fill = "#eef3fb" if placed.children else {"input": "#e7f6e7", "output": "#fdf0e0"}.get(placed.box.kind, "#f8f8f8")
    middle = x + placed.width / 2
    lines = "".join(
        f'<text x="{middle:.1f}" y="{y + _LINE * (n + 1):.1f}" text-anchor="middle"'
        f"{'' if n else _BOLD}>{escape(_plain(line))}</text>"
        for n, line in enumerate(placed.lines)
    )
    size = f'width="{placed.width:.1f}" height="{placed.height:.1f}"'
    title = f"<title>{escape(_plain(placed.box.path))}</title>"
    return f'<g>{title}<rect x="{x:.1f}" y="{y:.1f}" {size} rx="5" fill="{fill}" stroke="#9ab"/>{lines}</g>'


_BOLD = ' font-weight="600"'


def _arrows(placed: _Placed, x: float, y: float) -> list[str]:
    drawn: list[str] = []
    if not placed.children:
        return drawn
    side = 0
    for edge in placed.box.edges:
        source, target = placed.children[edge.source], placed.children[edge.target]
        x1, y1 = x + source.x + source.width / 2, y + source.y + source.height
        x2, y2 = x + target.x + target.width / 2, y + target.y
        if placed.ranks[edge.target] - placed.ranks[edge.source] > 1:
            # Around what stands between them.
            side += 1
            edge_x = x + placed.width - _PAD / 2 - (side % 6) * 10.0
            path = f"M{x1:.1f} {y1:.1f}C{edge_x:.1f} {y1 + _ROW:.1f} {edge_x:.1f} {y2 - _ROW:.1f} {x2:.1f} {y2:.1f}"
        else:
            path = f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
        title = f"<title>{escape(_plain(shape_words(edge.shape)))}</title>" if edge.shape is not None else ""
        drawn.append(f'<path d="{path}" fill="none" stroke="#555" marker-end="url(#a)">{title}</path>')
    return drawn


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
