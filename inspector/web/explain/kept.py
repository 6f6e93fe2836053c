"""The map on the page, kept for the report about its file."""

from __future__ import annotations

import numpy as np
import streamlit as st

from inspector.cam.exporting.blend import OPACITY
from inspector.cam.exporting.request import command_line
from inspector.cam.layers.layouts import layer_text
from inspector.cam.report import Explanation
from inspector.file_report.report import MapFacts
from inspector.render.overlay import overlay, png_bytes
from inspector.units import counted
from inspector.web.explain.answer import asked_label
from inspector.web.explain.files import own_request
from inspector.web.explain.pictures import Picture, for_display
from inspector.web.file_report import drop_maps, keep_map, kept_maps
from inspector.web.session import Hand
from inspector.web.text import plain

# Wide enough for a page of paper; a report with many stays one that can be sent.
_LONGEST = 640


def keep_button(hand: Hand, picture: Picture, maps: tuple[Explanation | None, ...], threads: int) -> None:
    """Keep the maps on the page for the report, in the colours they have here. threads: of torch, for the command that
    makes a map again."""
    shown = [made for made in maps if made is not None]
    if st.button("Keep for report", icon=":material/bookmark_add:", key="keep", disabled=not shown):
        for made in shown:
            keep_map(hand, _facts(hand, picture, made, threads))


def say_kept(hand: Hand) -> None:
    """Which maps are kept already, and a way back; nothing where there are none."""
    kept = kept_maps(hand)
    if not kept:
        return
    names = ", ".join(f"{one.target.name or f'class {one.target.index}'} by {one.method}" for one in kept[-3:])
    more = "" if len(kept) <= 3 else f" and {len(kept) - 3} before"
    with st.container(horizontal=True, vertical_alignment="center", key="keep-map"):
        st.caption(plain(f"{counted(len(kept), 'map')} in the report on the Overview page: {names}{more}."))
        st.button("Leave out", key="drop-kept", on_click=drop_maps, args=(hand,), type="tertiary")


def _facts(hand: Hand, picture: Picture, made: Explanation, threads: int) -> MapFacts:
    colour_map = str(st.session_state.get("colour-map", "viridis"))
    opacity = float(st.session_state.get("opacity", OPACITY))
    small, scaled = for_display(picture, made, _LONGEST)
    drawn = np.asarray(overlay(small, scaled, colour_map=colour_map, opacity=opacity))
    request = own_request(hand, picture, made, colour_map=colour_map, opacity=opacity, threads=threads)
    return MapFacts(
        picture=picture.name,
        picture_sha256=picture.sha256,
        method=made.method,
        layer=layer_text(made.layer) if made.layer.path else "",
        asked=asked_label(made),
        target=made.target,
        scores=made.scores[:5],
        preprocessing=made.preprocessing,
        command=command_line(request, "explained"),
        findings=made.findings,
        png=png_bytes(drawn),
    )
