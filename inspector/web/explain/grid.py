"""Methods x layers from the one pass, as small pictures to choose from."""

from __future__ import annotations

import streamlit as st
from PIL import Image

from inspector.cam.layers.layouts import layer_name
from inspector.cam.report import LayerProposal
from inspector.jobs.subjects import Naming, Thumbnails
from inspector.web import jobs
from inspector.web.explain import looking, sprites
from inspector.web.explain.labels import short_names
from inspector.web.explain.looking import Subject


def show_grid(
    subject: Subject, method: str, layer: LayerProposal, target: int, naming: Naming, *, keys: tuple[str, str]
) -> None:
    """Every method that is arithmetic at every kept layer; a click makes it the large one, instead of this one.

    keys: where the method and the name of the layer that are large stand.
    """
    colour_map = str(st.session_state.get("colour-map", "viridis"))
    methods = [entry for entry in looking.methods() if entry.arithmetic]
    job = subject.job("grid", looking.layers_with(subject, layer), target, naming, colour_map)
    found: Thumbnails = jobs.ask(job, says="Drawing the maps")
    # A row for each method: there are more of them than layers, and their names are words.
    cells = [
        [None if cell is None else Image.fromarray(cell) for cell in line] for line in zip(*found.lines, strict=True)
    ]
    notes = {(x, y): says for y, x, says in found.notes}
    st.caption(
        f"{len(methods)} methods at {len(subject.layers)} layers from one forward pass. Click a map to see it large. "
        "Each map is scaled by its own maximum" + (", also those with a mark, which say little." if notes else ".")
    )
    short = short_names([layer_name(one) for one in subject.layers])
    sprites.picture_table(
        [sprites.Head(id=m.id, title=m.title, says=m.says) for m in methods],
        [
            sprites.Head(
                id=layer_name(one),
                title=short[layer_name(one)],
                note=f"{one.grid[0]}x{one.grid[1]}" + (" suggested" if one.rank == 1 else ""),
                says=f"{layer_name(one)}. {one.reason}",
            )
            for one in subject.layers
        ],
        cells,
        chosen=(method, layer_name(layer)),
        called=lambda row, column: f"{row.title} at {column.title}",
        key=f"grid-{subject.hand.sha256[:12]}",
        on_choice=lambda row, column: st.session_state.update(dict(zip(keys, (row, column), strict=True))),
        notes=notes,
    )
