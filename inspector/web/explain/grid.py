"""Methods x layers from the one pass, as small pictures to choose from."""

from __future__ import annotations

import numpy as np
import streamlit as st
from PIL import Image

from inspector.cam.layers.layouts import layer_name
from inspector.cam.report import Explanation, LayerProposal
from inspector.errors import ExplainError
from inspector.render.overlay import overlay
from inspector.web.explain import looking, sprites
from inspector.web.explain.answer import Naming
from inspector.web.explain.labels import short_names
from inspector.web.explain.looking import Subject
from inspector.web.explain.pictures import for_display

_SIDE = 62


def show_grid(
    subject: Subject, method: str, layer: LayerProposal, target: int, naming: Naming, *, keys: tuple[str, str]
) -> None:
    """Every method that is arithmetic at every kept layer; a click makes it the large one, instead of this one.

    keys: where the names of the layer and the method that are large stand.
    """
    from inspector.cam.methods import METHODS

    colour_map = str(st.session_state.get("colour-map", "viridis"))
    methods = [entry for entry in METHODS if entry.arithmetic is not None]
    cells: list[list[Image.Image | None]] = []
    notes: dict[tuple[int, int], str] = {}
    with st.spinner("Drawing the maps …"):
        for place in looking.layers_with(subject, layer):
            line: list[Image.Image | None] = []
            for entry in methods:
                try:
                    made = looking.explained(subject, looking.spec_of(subject, entry.id, place), target, naming)
                except ExplainError:
                    line.append(None)
                    continue
                if made.findings:
                    notes[len(cells), len(line)] = ", ".join(finding.id for finding in made.findings)
                line.append(small(subject, made, colour_map))
            cells.append(line)
    st.caption(
        f"{len(methods)} methods at {len(subject.layers)} layers from one forward pass. Click a map to see it large. "
        "Each map is scaled by its own maximum" + (", also those with a mark, which say little." if notes else ".")
    )
    short = short_names([layer_name(one) for one in subject.layers])
    sprites.picture_table(
        [
            sprites.Head(
                id=layer_name(one),
                title=short[layer_name(one)],
                note=f"{one.grid[0]}x{one.grid[1]}" + (" suggested" if one.rank == 1 else ""),
                says=f"{layer_name(one)}. {one.reason}",
            )
            for one in subject.layers
        ],
        [sprites.Head(id=m.id, title=m.title, says=m.says) for m in methods],
        cells,
        chosen=(layer_name(layer), method),
        key=f"grid-{subject.hand.sha256[:12]}",
        on_choice=lambda row, column: st.session_state.update(dict(zip(keys, (row, column), strict=True))),
        notes=notes,
    )


def small(subject: Subject, made: Explanation, colour_map: str) -> Image.Image:
    """The overlay of what the model saw, at a thumbnail's size."""
    picture, scaled = for_display(subject.picture, made, longest=3 * _SIDE)
    drawn = Image.fromarray(overlay(picture, scaled, colour_map=colour_map, opacity=0.6))
    return cropped(drawn, scaled)


def cropped(drawn: Image.Image, made: Explanation, side: int = _SIDE) -> Image.Image:
    """The model's own part of a picture, as a thumbnail."""
    crop = made.crop
    box = (crop.left, crop.top, crop.left + crop.width, crop.top + crop.height)
    shape = np.array([crop.width, crop.height]) * side / max(crop.width, crop.height)
    width, height = (max(1, round(n)) for n in shape)
    left, top, right, bottom = map(round, box)
    return drawn.crop((left, top, right, bottom)).resize((width, height), Image.Resampling.LANCZOS)
