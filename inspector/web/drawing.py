"""The drawing of a network: boxes in boxes with arrows, opened and folded in the browser, which lays them out.

The element's scripts come by address from the server (static_files.py), so that they are kept by the browser and can
start a worker; Streamlit is only handed the few lines that load them.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from inspector.graph.types import Box, BoxEdge, Size
from inspector.units import human_shape
from inspector.web.static_files import address_of
from inspector.web.uploads import is_mounted

_STATIC = Path(__file__).parent / "static"

_component = st.components.v2.component(
    "inspector_drawing",
    html=(_STATIC / "drawing.html").read_text(encoding="utf-8"),
    css=(_STATIC / "drawing.css").read_text(encoding="utf-8"),
    js=(_STATIC / "drawing.js").read_text(encoding="utf-8"),
)


def show_drawing(
    box: Box,
    *,
    key: str,
    columns: Mapping[str, Mapping[str, float]],
    chosen: str,
    on_choice: Callable[[Box], None],
    says: str = "",
    coloured: str = "",
    steps: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """The network `box`, whose children are the first boxes to be seen.

    columns: what boxes may be coloured by: name -> module's path -> number. chosen: path of the box that stands out, ""
    for none; of modules folded into one box each path means that box. on_choice: called with a box of the tree, before
    the run. says: a sentence that stands under it, such as why there are no arrows. coloured: the
    column whose colours are there at first, "" for what boxes do. steps: of a column's numbers, as units.py has them; a
    column without has no thousands.
    """
    if not is_mounted():
        st.info("The drawing needs the server that app.py starts.", icon=":material/info:")
        return

    def tell() -> None:
        told = getattr(st.session_state.get(key), "chosen", None)
        # The browser only names a box; whether there is one, the tree says.
        named = next((each for each, _ in _in_order(box) if isinstance(told, str) and each.path == told), None)
        if named is not None:
            on_choice(named)

    drawn = as_data(box, columns)
    _component(
        key=key,
        data={
            "script": address_of("drawing/element.js"),
            "drawn": drawn,
            "digest": hashlib.sha256(drawn.encode()).hexdigest(),
            "chosen": chosen,
            "says": says,
            "coloured": coloured,
            "steps": {name: list(one) for name, one in (steps or {}).items()},
        },
        on_chosen_change=tell,
    )


def as_data(box: Box, columns: Mapping[str, Mapping[str, float]]) -> str:
    """JSON of lists side by side, a place per box, parents before their children: a tree of objects is thrice as long.

    arrows: by place of the box they lie in, four numbers each: source and target among its children, place of the shape
    in `shapes` (-1: not known), count.
    """
    boxes = list(_in_order(box))
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


def _in_order(box: Box) -> Iterator[tuple[Box, int]]:
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
