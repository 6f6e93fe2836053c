"""The maps themselves: over the picture, one beside another, their difference; colours redraw only this."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from PIL import Image

from inspector.cam.report import Explanation, Score
from inspector.jobs.job import Job
from inspector.render.colour_maps import COLOUR_MAPS, colour_table, diverging_table, signed_colours
from inspector.render.outline import above, draw_box, draw_outline, measure_outline
from inspector.render.overlay import lay_over, overlay
from inspector.units import human_share
from inspector.web import jobs
from inspector.web.explain import sprites
from inspector.web.explain.answer import asked_label, score_bars
from inspector.web.explain.files import download_row
from inspector.web.explain.pictures import Picture, for_display
from inspector.web.session import Hand
from inspector.web.text import escaped, plain

OVERLAY, REVEAL, SIGNED = "Overlay", "Drag to reveal", "For and against"


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How it is drawn. threshold: 0 for no outline."""

    view: str
    colour_map: str
    opacity: float
    threshold: float


@st.fragment
def show(
    hand: Hand,
    picture: Picture,
    first: Explanation,
    second: Explanation | None,
    scores: tuple[Score, ...],
    threads: int,
) -> None:
    """Picture, heat and answer side by side. scores: the whole answer, best first. threads: of torch."""
    places = st.container()
    style = _choose_style()
    small, scaled = for_display(picture, first)
    with places:
        if second is None:
            _one(small, scaled, style, scores)
        else:
            _two(small, scaled, for_display(picture, second)[1], style, scores)
    download_row(hand, picture, first, second, style_args=(style.colour_map, style.opacity), threads=threads)


def _choose_style() -> Style:
    kind, colour, strength, cut = st.columns([4, 2, 2, 2], vertical_alignment="top")
    view = kind.segmented_control("View", (OVERLAY, REVEAL, SIGNED), default=OVERLAY, required=True, key="view")
    colour_map = colour.selectbox("Colours", COLOUR_MAPS, key="colour-map", disabled=view == SIGNED)
    opacity = strength.slider("Opacity", 0.0, 1.0, 0.5, 0.05, key="opacity")
    threshold = cut.slider(
        "Outline at", 0.0, 0.95, 0.0, 0.05, key="threshold", help="Of the map's highest place; 0 draws none."
    )
    return Style(view=view or OVERLAY, colour_map=colour_map, opacity=opacity, threshold=threshold)


def _one(small: Image.Image, made: Explanation, style: Style, scores: tuple[Score, ...]) -> None:
    left, right, answer = st.columns([3, 3, 2])
    seen = overlay(small, made, opacity=0.0, dim_outside=0.6)
    if made.place is not None:
        left_side, top, right_side, bottom = map(round, made.place)
        seen = draw_box(seen, (left_side, top, right_side, bottom))
    left.image(seen, caption="What the model saw", width="stretch", alt="The picture")
    label = asked_label(made)
    with right:
        drawn, found = drawn_map(small, made, style)
        if style.view == REVEAL:
            sprites.reveal(overlay(small, made, opacity=0.0), drawn, key="reveal")
            st.caption(f"Where it looked for {plain(label)}")
        else:
            st.image(drawn, caption=f"Where it looked for {plain(label)}", width="stretch", alt="Heat map overlay")
        st.html(legend(made, style))
        if found:
            st.caption(found)
    with answer:
        st.markdown("**Answer**")
        st.html(score_bars(scores))


def _two(small: Image.Image, one: Explanation, other: Explanation, style: Style, scores: tuple[Score, ...]) -> None:
    columns = st.columns(3)
    for number, (column, made) in enumerate(zip(columns, (one, other), strict=False)):
        with column:
            drawn, found = drawn_map(small, made, style)
            label = plain(asked_label(made))
            if style.view == REVEAL:
                sprites.reveal(overlay(small, made, opacity=0.0), drawn, key=f"reveal-{number}")
                st.caption(f"For {label}")
            else:
                st.image(drawn, caption=f"For {label}", width="stretch", alt=f"Heat map for {label}")
            st.html(legend(made, style))
            if found:
                st.caption(found)
    with columns[2]:
        values, size = difference(one, other)
        drawn = lay_over(small, spread(values, one), one.crop, signed_colours, opacity=max(style.opacity, 0.5))
        st.image(drawn, caption="Difference of the two", width="stretch", alt="Difference of the two maps")
        st.html(
            scale(
                diverging_table(),
                f"{size:.3g} more for {asked_label(other)}",
                f"{size:.3g} more for {asked_label(one)}",
            )
        )
    st.html(score_bars(scores))


def drawn_map(small: Image.Image, made: Explanation, style: Style) -> tuple[NDArray[np.uint8], str]:
    """((H, W, 3), what the outline says)."""
    if style.view == SIGNED:
        values, _ = signed(made)
        drawn = lay_over(small, spread(values, made), made.crop, signed_colours, opacity=style.opacity)
    else:
        drawn = overlay(small, made, colour_map=style.colour_map, opacity=style.opacity)
    if not style.threshold:
        return drawn, ""
    mask = above(made.heat, made.crop, style.threshold)
    found = measure_outline(mask, made.crop)
    if found.box is None:
        return drawn, f"No place reaches {style.threshold:.2f} of the highest."
    says = (
        f"{human_share(found.share)} of what the model saw reaches {style.threshold:.2f} of the highest; the box is "
        "around the largest part."
    )
    return draw_outline(drawn, mask, found.box), says


def signed(made: Explanation) -> tuple[NDArray[np.float32], float]:
    """(the raw map in [-1, 1] by its largest magnitude, that magnitude)."""
    size = float(np.abs(np.nan_to_num(made.raw, posinf=0, neginf=0)).max(initial=0.0))
    return (made.raw / size if size else made.raw).astype(np.float32), size


def difference(one: Explanation, other: Explanation) -> tuple[NDArray[np.float32], float]:
    """(first minus second before ReLU in [-1, 1] by its largest magnitude, that magnitude): both on one scale."""
    gap = np.nan_to_num(one.raw - other.raw, posinf=0, neginf=0)
    size = float(np.abs(gap).max(initial=0.0))
    return (gap / size if size else gap).astype(np.float32), size


def spread(values: NDArray[np.float32], made: Explanation) -> NDArray[np.float32]:
    """Numbers at the map's grid as they lie over the model's input, each where its cell looks."""
    found: NDArray[np.float32] = jobs.ask(Job(kind="spread", arguments=(made, values)), says="Drawing the map")
    return found


def legend(made: Explanation, style: Style) -> str:
    """The colours with the raw numbers at their ends, as HTML."""
    if style.view == SIGNED:
        _, size = signed(made)
        return scale(diverging_table(), f"{-size:.3g} against", f"{size:.3g} for")
    return scale(colour_table(style.colour_map), "0 and below", f"{max(made.raw_maximum, 0.0):.3g}")


def scale(table: NDArray[np.uint8], low: str, high: str) -> str:
    """A colour bar, as HTML."""
    stops = [table[round(k * (len(table) - 1) / 16)] for k in range(17)]
    colours = ",".join(f"rgb({r},{g},{b})" for r, g, b in (map(int, stop) for stop in stops))
    return (
        f'<div class="mi-scale"><i style="background:linear-gradient(90deg,{colours})"></i>'
        f"<span>{escaped(low)}</span><span>{escaped(high)}</span></div>"
    )
