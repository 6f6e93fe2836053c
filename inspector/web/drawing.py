"""The drawing of a network: boxes in boxes with arrows, opened and folded in the browser, which lays them out.

The element's scripts come by address from the server (static_files.py), so that they are kept by the browser and can
start a worker; Streamlit is only handed the few lines that load them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import streamlit as st

from inspector.graph.types import Box
from inspector.render.drawing_data import drawing_data, in_order
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
        named = next((each for each, _ in in_order(box) if isinstance(told, str) and each.path == told), None)
        if named is not None:
            on_choice(named)

    drawn = drawing_data(box, columns)
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
