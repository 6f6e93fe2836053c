"""A network's graph as an indented outline, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from inspector.graph.types import NodeKind
from inspector.render.graph_files.words import shape_words
from inspector.render.text import safe, table
from inspector.units import counted, shorten_middle

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.graph.types import Box, Graph

_MOST_ROWS = 2_000
_LISTED = 4


def graph_text(graph: Graph, box: Box, *, depth: int) -> RenderableType:
    """Modules opened to a depth, in the order in which they run. box: of the same graph."""
    operators = sum(node.kind is NodeKind.OPERATOR for node in graph.nodes)
    says = f"{counted(operators, 'operator')}, {counted(len(graph.edges), 'edge')}, from {graph.origin}."
    made = table("Part", "Class or operator", "Gives", "Takes")
    rows = 0
    todo = [(child, 0, _takes(box, place)) for place, child in reversed(list(enumerate(box.children)))]
    while todo and rows < _MOST_ROWS:
        part, level, takes = todo.pop()
        rows += 1
        name = f"{'  ' * level}{shorten_middle(part.label, 60)}{f' ×{part.repeat}' if part.repeat > 1 else ''}"
        kind = part.kind if part.kind != part.label else ""
        made.add_row(safe(name), safe(shorten_middle(kind, 40)), safe(shape_words(part.shape)), safe(takes))
        if level + 1 < depth:
            inner = reversed(list(enumerate(part.children)))
            todo += [(child, level + 1, _takes(part, place)) for place, child in inner]
    name = f"{box.kind}: " if box.kind else ""
    lines: list[RenderableType] = [safe(name + says), "", made]
    if todo:
        lines.append(f"[dim]Only the first {_MOST_ROWS:,} rows are shown; --format json has all.[/dim]")
    return Group(*lines, *(f"[dim]{safe(remark)}[/dim]" for remark in graph.remarks))


def _takes(parent: Box, place: int) -> str:
    """From where, unless it is only from what stands right before it."""
    sources = [edge.source for edge in parent.edges if edge.target == place]
    hidden = sum(edge.target == place for edge in parent.implied)
    if not hidden and (sources == [place - 1] or (not sources and place in parent.entries)):
        return "" if place not in parent.entries or not sources else "and what goes in"
    names = [shorten_middle(parent.children[source].label, 30) for source in sources[-_LISTED:]]
    more = len(sources) - len(names) + hidden
    return ", ".join(
        [*names, *([f"{more} more"] if more else []), *(["what goes in"] if place in parent.entries else [])]
    )
