"""Graphviz's DOT: opened modules are clusters. Source: graphviz.org/doc/info/lang.html."""

from __future__ import annotations

from inspector.graph.boxes import Drawing
from inspector.graph.view import view
from inspector.render.graph_files.words import box_words, shape_words


def as_dot(drawing: Drawing, depth: int | None = None) -> str:
    """The drawing opened to a depth."""
    sight = view(drawing, depth)
    numbers = {seen.box.path: number for number, seen in enumerate(sight.boxes)}
    lines = ["digraph network {", '  node [shape=box, style=rounded, fontname="sans-serif"];']
    lines.append('  graph [fontname="sans-serif"];')
    lines.append('  edge [fontname="sans-serif", fontsize=9];')
    opened: list[str] = []
    for seen in sight.boxes:
        while opened and opened[-1] != seen.inside:
            opened.pop()
            lines.append("  " * (len(opened) + 1) + "}")
        gap = "  " * (len(opened) + 1)
        name, more = box_words(seen.box)
        number = numbers[seen.box.path]
        if seen.is_open:
            label = _quoted(f"{name}  {more}".strip())
            lines.append(f"{gap}subgraph cluster_{number} {{ label={label};")
            opened.append(seen.box.path)
        else:
            lines.append(f"{gap}n{number} [label={_quoted(name, more)}];")
    while opened:
        opened.pop()
        lines.append("  " * (len(opened) + 1) + "}")
    for source, target, shape in sight.edges:
        says = shape_words(shape)
        label = f" [label={_quoted(says)}]" if says else ""
        lines.append(f"  n{numbers[source]} -> n{numbers[target]}{label};")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _quoted(*parts: str) -> str:
    """A DOT string of lines. Nothing of a file ends it, or is read as an escape of Graphviz's."""
    lines = [_plain(part).replace("\\", "\\\\").replace('"', '\\"') for part in parts if part]
    return '"' + "\\n".join(lines) + '"'


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
