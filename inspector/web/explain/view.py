"""The maps themselves: over the picture, one beside another, their difference; colours redraw only this."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from PIL import Image

from inspector.cam.exporting.blend import OPACITY
from inspector.cam.report import Explanation
from inspector.jobs.job import Job
from inspector.render.colour_maps import COLOUR_MAPS, colour_table, diverging_table, signed_colours
from inspector.render.outline import above, draw_box, draw_outline, measure_outline
from inspector.render.overlay import lay_over, overlay
from inspector.units import human_share
from inspector.web import jobs
from inspector.web.explain import address, inputs, pictures, sprites
from inspector.web.explain.answer import asked_label
from inspector.web.explain.choices import linked_to, no_longer_linked, say_gone
from inspector.web.explain.files import download_row
from inspector.web.explain.kept import keep_button, say_kept
from inspector.web.explain.pictures import Picture, for_display
from inspector.web.session import Hand
from inspector.web.text import escaped, plain

OVERLAY, REVEAL, SIGNED = "Overlay", "Drag to reveal", "For and against"
VIEWS = (OVERLAY, REVEAL, SIGNED)
_SHOWN = "explain-shown"
DRAWING = address.settings(VIEWS, COLOUR_MAPS, OPACITY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How it is drawn. threshold: 0 for no outline."""

    view: str
    colour_map: str
    opacity: float
    threshold: float


@st.fragment
def show(hand: Hand, picture: Picture, first: Explanation, second: Explanation | None, threads: int) -> None:
    """Picture and heat side by side, how they are drawn, what can be taken home. threads: of torch."""
    places = st.container(key="maps")
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="under-the-map"):
        view = st.segmented_control(
            "View", VIEWS, required=True, key="view", label_visibility="collapsed", persist_state="session",
            on_change=no_longer_linked, args=("view",),
        )  # fmt: skip
        files = st.container(horizontal=True, width="content", gap="xsmall", key="explain-files")
    kept = st.container(key="kept-maps")
    _tell_gone("view", view or OVERLAY)
    style = _choose_style(view or OVERLAY)
    small, scaled = for_display(picture, first)
    with places:
        if second is None:
            _one(small, scaled, style)
        else:
            _two(small, scaled, for_display(picture, second)[1], style)
    with files:
        download_row(hand, picture, first, second, style_args=(style.colour_map, style.opacity), threads=threads)
        keep_button(hand, picture, (first, second), threads)
    with kept:
        say_kept(hand)
    address.follow(hand, picture, DRAWING, inputs.as_linked(inputs.inferred(hand), first.preprocessing))


def begin() -> None:
    """How a map is drawn as long as nobody chose, before anything asks."""
    for one in DRAWING:
        st.session_state.setdefault(one.slot, one.first)


def is_shown(hand: Hand, picture: Picture) -> bool:
    """Whether what this session's page shows is of the same file and picture."""
    return bool(st.session_state.get(_SHOWN) == (hand.sha256, picture.sha256))


def note_shown(hand: Hand, picture: Picture) -> None:
    """A map of these was shown, or what was said in its place."""
    st.session_state[_SHOWN] = (hand.sha256, picture.sha256)


def reserve(picture: Picture) -> None:
    """As much room as two pictures take, so that nothing moves when they come."""
    width, height = pictures.drawn(picture).size
    box = f'<div style="aspect-ratio:{width}/{height}"></div>'
    st.html(f'<div class="mi-reserved" aria-hidden="true">{box}{box}</div>')


def _choose_style(view: str) -> Style:
    colour, strength, cut = st.columns(3, vertical_alignment="top")
    colour_map = colour.selectbox(
        "Colours", COLOUR_MAPS, key="colour-map", disabled=view == SIGNED, persist_state="session",
        on_change=no_longer_linked, args=("colour-map",),
    )  # fmt: skip
    opacity = strength.slider(
        "Opacity", 0.0, 1.0, step=0.05, key="opacity", help="Of the hottest place; it follows the heat.",
        persist_state="session", on_change=no_longer_linked, args=("opacity",),
    )  # fmt: skip
    threshold = cut.slider(
        "Outline at", 0.0, address.OUTLINE_TO, step=0.05, key="threshold",
        help="Of the map's highest place; 0 draws none.",
        persist_state="session", on_change=no_longer_linked, args=("threshold",),
    )  # fmt: skip
    with colour:
        _tell_gone("colour-map", colour_map)
    with strength:
        _tell_gone("opacity", f"{opacity:g}", why="no step of this slider")
    with cut:
        _tell_gone("threshold", f"{threshold:g}", why="no step of this slider")
    return Style(view=view, colour_map=colour_map, opacity=opacity, threshold=threshold)


def _tell_gone(slot: str, now: str, *, why: str = "none of these") -> None:
    """Where a link asked for a drawing that the page does not know. now: what stands there."""
    gone = linked_to(slot, ())
    if gone is not None:
        say_gone(gone, f"this is {now}", why=why)


def _one(small: Image.Image, made: Explanation, style: Style) -> None:
    left, right = st.columns(2)
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


def _two(small: Image.Image, one: Explanation, other: Explanation, style: Style) -> None:
    for number, (column, made) in enumerate(zip(st.columns(2), (one, other), strict=True)):
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
    with st.columns(2)[0]:
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
