"""A network's boxes as JSON for the scripts that draw it (`web/static/drawing/`), in the app and on the page without a
server."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from inspector.graph.types import Box, BoxEdge, Size
from inspector.units import human_shape


def drawing_data(box: Box, columns: Mapping[str, Mapping[str, float]]) -> str:
    """JSON of lists side by side, a place per box, parents before their children: a tree of objects is thrice as long.

    arrows: by place of the box they lie in, four numbers each: source and target among its children, place of the shape
    in `shapes` (-1: not known), count.
    """
    boxes = list(in_order(box))
    shapes: dict[str, int] = {}

    def shape_place(shape: tuple[Size, ...] | None) -> int:
        return -1 if shape is None else shapes.setdefault(_shape_says(shape), len(shapes))

    def arrow(edge: BoxEdge) -> tuple[int, int, int, int]:
        return (edge.source, edge.target, shape_place(edge.shape), edge.count)

    drawn: dict[str, Any] = {
        "label": [each.label for each, _ in boxes],
        "kind": [each.kind for each, _ in boxes],
        "path": [each.path for each, _ in boxes],
        "isModule": [int(bool(each.module)) for each, _ in boxes],
        "shape": [shape_place(each.shape) for each, _ in boxes],
        "weight": {place: shape_place(each.weight) for place, (each, _) in enumerate(boxes) if each.weight},
        "repeat": [each.repeat for each, _ in boxes],
        "parent": [parent for _, parent in boxes],
        "repeated": {place: each.repeated for place, (each, _) in enumerate(boxes) if each.repeated},
        "arrows": {
            # Of very many the element hides those that a chain of others says as well, and shows them on demand.
            place: [number for edge in (*each.edges, *each.implied) for number in arrow(edge)]
            for place, (each, _) in enumerate(boxes)
            if each.edges
        },
        "entries": {place: each.entries for place, (each, _) in enumerate(boxes) if each.entries},
        "exits": {place: each.exits for place, (each, _) in enumerate(boxes) if each.exits},
        "columns": {
            name: [_finite(values.get(each.module)) if each.module else None for each, _ in boxes]
            for name, values in columns.items()
        },
    }
    return json.dumps({**drawn, "shapes": list(shapes)}, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def in_order(box: Box) -> Iterator[tuple[Box, int]]:
    """Each box with the place of its parent, -1 for the whole."""
    waiting, place = [(box, -1)], 0
    while waiting:
        here, parent = waiting.pop()
        yield here, parent
        waiting.extend((child, place) for child in reversed(here.children))
        place += 1


def _finite(value: float | None) -> float | None:
    # JSON has no others, and no colour stands for them.
    return value if value is not None and math.isfinite(value) else None


def _shape_says(shape: tuple[Size, ...]) -> str:
    return human_shape(tuple("?" if size is None else size for size in shape))
