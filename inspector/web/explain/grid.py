"""Methods x layers from the one pass, as small pictures to choose from."""

from __future__ import annotations

import numpy as np
import streamlit as st
from PIL import Image

from inspector.cam.layouts import layer_name
from inspector.cam.report import Explanation
from inspector.errors import ExplainError
from inspector.render.overlay import overlay
from inspector.web.explain import looking, sprites
from inspector.web.explain.answer import Naming
from inspector.web.explain.labels import short_names
from inspector.web.explain.looking import Recipe, Subject
from inspector.web.explain.pictures import for_display

_SIDE = 62


def show_grid(subject: Subject, recipe: Recipe, naming: Naming, layer_key: str, method_key: str) -> None:
    """Every method that is arithmetic at every kept layer; a click makes it the large one."""
    from inspector.cam.methods import METHODS

    colour_map = str(st.session_state.get("colour-map", "viridis"))
    methods = [method for method in METHODS if method.arithmetic is not None]
    cells: list[list[Image.Image | None]] = []
    notes: dict[tuple[int, int], str] = {}
    with st.spinner("Drawing the maps …"):
        for layer in looking.layers_with(subject, recipe.layer):
            line: list[Image.Image | None] = []
            for method in methods:
                one = Recipe(method=method.id, layer=layer, target=recipe.target)
                try:
                    made = looking.explained(subject, one, naming)
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
    short = short_names([layer_name(layer) for layer in subject.layers])
    sprites.picture_table(
        [
            sprites.Head(
                id=layer_name(layer),
                title=short[layer_name(layer)],
                note=f"{layer.grid[0]}x{layer.grid[1]}" + (" suggested" if layer.rank == 1 else ""),
                says=f"{layer_name(layer)}. {layer.reason}",
            )
            for layer in subject.layers
        ],
        [sprites.Head(id=m.id, title=m.title, says=m.says) for m in methods],
        cells,
        chosen=(layer_name(recipe.layer), recipe.method),
        key=f"grid-{subject.hand.sha256[:12]}",
        on_choice=lambda row, column: st.session_state.update({layer_key: row, method_key: column}),
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
