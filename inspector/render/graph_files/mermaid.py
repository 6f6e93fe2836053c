"""A Mermaid flowchart, as Markdown pages show it. Its viewers refuse more than 500 edges or 50,000 characters.

Source: mermaid.js.org/config/schema-docs/config.html (maxEdges, maxTextSize); mermaid.js.org/syntax/flowchart.html.
"""

from __future__ import annotations

import re

from inspector.graph.boxes import Drawing
from inspector.graph.view import View, view
from inspector.render.graph_files.words import box_words, shape_words

MOST_EDGES = 500
MOST_CHARACTERS = 50_000
_DEEPEST = 12
# What could end a label or begin markup is written as its number.
_SPECIAL = re.compile(r"[^\w .,:×…()+\-]")


def as_mermaid(drawing: Drawing, depth: int | None = None) -> str:
    """The drawing opened to a depth, or as deep as fits: then a comment in the first lines says so."""
    asked = _DEEPEST if depth is None else min(depth, _DEEPEST)
    whole = view(drawing, depth)
    text = _flowchart(whole, [])
    if len(whole.edges) <= MOST_EDGES and len(text) <= MOST_CHARACTERS:
        return text
    for level in range(asked - 1, -1, -1):
        sight = view(drawing, level)
        note = f"Opened to depth {level}: {len(whole.edges):,} edges and {len(text):,} characters are more than shown."
        shorter = _flowchart(sight, [note])
        if len(sight.edges) <= MOST_EDGES and len(shorter) <= MOST_CHARACTERS:
            return shorter
    sight = view(drawing, 0)
    note = f"Cut short: only the first edges of {len(sight.edges):,} are here."
    edges = MOST_EDGES
    while True:
        shorter = _flowchart(View(boxes=sight.boxes, edges=sight.edges[:edges]), [note])
        if len(shorter) <= MOST_CHARACTERS or not edges:
            return shorter
        edges //= 2


def _flowchart(sight: View, notes: list[str]) -> str:
    numbers = {seen.box.path: number for number, seen in enumerate(sight.boxes)}
    lines = ["flowchart TD", *(f"%% {note}" for note in notes)]
    opened: list[str] = []
    for seen in sight.boxes:
        while opened and opened[-1] != seen.inside:
            opened.pop()
            lines.append(" " * (len(opened) + 1) + "end")
        gap = " " * (len(opened) + 1)
        name, more = box_words(seen.box)
        number = numbers[seen.box.path]
        if seen.is_open:
            lines.append(f'{gap}subgraph g{number}["{_escaped(f"{name}  {more}".strip())}"]')
            opened.append(seen.box.path)
        else:
            label = "<br>".join(_escaped(part) for part in (name, more) if part)
            lines.append(f'{gap}n{number}["{label}"]')
    while opened:
        opened.pop()
        lines.append(" " * (len(opened) + 1) + "end")
    for source, target, shape in sight.edges:
        says = _escaped(shape_words(shape))
        lines.append(f" n{numbers[source]} -->" + (f'|"{says}"| ' if says else " ") + f"n{numbers[target]}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};" if found[0].isprintable() else " ", text)
