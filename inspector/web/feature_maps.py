"""Feature maps, below a pass that ran: the channels of a chosen module as a grid of small pictures."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st
from PIL import Image

from inspector.doctor.maps_asked import MOST_SHOWN, MapsAsked, Order, Scale, Side, proposed_call
from inspector.doctor.maps_report import FeatureMaps
from inspector.doctor.report import CallRecord, Trace
from inspector.jobs.job import Job
from inspector.render.colour_maps import colour_table
from inspector.render.feature_maps import (
    COLOURS,
    caption,
    channel_pixels,
    heading,
    is_marked,
    maps_sheet,
    sentences,
)
from inspector.render.overlay import png_bytes
from inspector.units import human_shape
from inspector.web import jobs
from inspector.web.explain.choices import choose_one, folded
from inspector.web.explain.view import scale as scale_bar
from inspector.web.guard import said
from inspector.web.session import Hand
from inspector.web.text import escaped, visible

_SIDES = {Side.OUTPUT: "Its output", Side.INPUT: "Its input"}
_ORDERS = {Order.VARIANCE: "Strongest first", Order.NUMBER: "By number"}
_SCALES = {Scale.CHANNEL: "Per channel", Scale.SHARED: "Shared"}
_MOST = (32, MOST_SHOWN, 128)


def show_feature_maps(trace: Trace, arguments: tuple[Any, ...], hand: Hand) -> None:
    """arguments: of the job that made the trace, so that the same pass runs again for the one tensor."""
    key = f"maps-{hand.sha256[:12]}"
    box = folded("Feature maps of a module", key=f"{key}-open", icon=":material/grid_view:")
    if not st.session_state.get(f"{key}-open"):
        return
    with box, said():
        asked = _asked(trace, key)
        if asked is None:
            st.caption("No module of this pass has a tensor of three axes or more: there is nothing to picture.")
            return
        left, middle, right, _ = st.columns([1.2, 1.2, 1, 1.6])
        scale = left.selectbox("Scale", list(_SCALES), format_func=_SCALES.__getitem__, key=f"{key}-scale")
        colours = str(middle.selectbox("Colours", COLOURS, key=f"{key}-colours"))
        most = int(right.selectbox("At most", _MOST, index=_MOST.index(MOST_SHOWN), key=f"{key}-most"))
        job = Job(kind="feature-maps", arguments=(*arguments, replace(asked, most=most)), near=hand.sha256)
        found: FeatureMaps = jobs.ask(job, says="Picturing the channels")
        _show(found, scale, colours, key=key)


def _asked(trace: Trace, key: str) -> MapsAsked | None:
    """Module, call, side, tensor and order as they are chosen; None where nothing could be."""
    wide, narrow, last = st.columns([3, 1.1, 1.5])
    side = narrow.selectbox("Of", list(_SIDES), format_func=_SIDES.__getitem__, key=f"{key}-side")
    calls = {call.number: call for call in trace.calls if any(len(one) > 2 for one in _shapes(call, side))}
    words = _words(calls, side)
    if not words:
        return None
    first = proposed_call(trace)
    with wide:
        start = first.number if first is not None and first.number in words else next(iter(words))
        number = choose_one("Module", words, f"{key}-module", first=start)
    order = last.selectbox("Order", list(_ORDERS), format_func=_ORDERS.__getitem__, key=f"{key}-order")
    call = calls[start if number is None else number]
    shapes, tensor = _shapes(call, side), 0
    if len(shapes) > 1:
        tensor = wide.selectbox(
            "Tensor",
            range(len(shapes)),
            format_func=lambda n: f"{n}: {human_shape(shapes[n])}",
            key=f"{key}-tensor-{call.number}-{side}",
        )
    return MapsAsked(path=call.path, time=call.time, side=side, tensor=tensor, order=order)


def _shapes(call: CallRecord, side: Side) -> list[tuple[int, ...]]:
    return [one.shape for one in (call.outputs if side is Side.OUTPUT else call.inputs)]


def _words(calls: Mapping[int, CallRecord], side: Side) -> dict[int, str]:
    several = {call.path for call in calls.values() if call.time > 1}
    return {
        number: visible(
            f"{call.path or '(the model)'}"
            + (f", call {call.time}" if call.path in several else "")
            + f"  ·  {call.kind}  ·  {human_shape(_shapes(call, side)[0])}"
        )
        for number, call in calls.items()
    }


def _show(found: FeatureMaps, scale: Scale, colours: str, *, key: str) -> None:
    which = heading(found)
    st.html(
        f"<p><b>{escaped(which[0].upper() + which[1:])}</b><br>"
        f"<small>{escaped(' '.join(sentences(found, scale)))}</small></p>"
    )
    if found.low is None:
        return
    lines = found.axes.layout == "NCL"
    if not lines:
        table = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
        low, high = ("its least", "its greatest") if scale is Scale.CHANNEL else _ends(found)
        st.html(scale_bar(table if colours == "grey" else colour_table(colours), low, high))
    cells = []
    for place, number in enumerate(found.shown):
        name, says = caption(found, number)
        pixels = channel_pixels(found, place, scale=scale, colours=colours)
        marked = " mi-marked" if is_marked(found, number) else ""
        cells.append(
            f'<figure class="mi-map{marked}" title="{escaped(f"Channel {number}: {says}")}">'
            f'<img src="{_address(pixels)}" alt="Channel {number}">'
            f"<figcaption><b>{name}</b> {escaped(says)}</figcaption></figure>"
        )
    st.html(f'<div class="mi-maps{" mi-lines" if lines else ""}">{"".join(cells)}</div>')
    st.download_button(
        "PNG",
        lambda: png_bytes(maps_sheet(found, scale=scale, colours=colours)),
        "feature_maps.png",
        "image/png",
        on_click="ignore",
        key=f"{key}-png",
    )


def _ends(found: FeatureMaps) -> tuple[str, str]:
    return ("", "") if found.low is None or found.high is None else (f"{found.low:.4g}", f"{found.high:.4g}")


def _address(pixels: Any) -> str:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
