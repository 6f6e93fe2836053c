"""The layer's channels, those first that move the score most: what each one sees, over the picture."""

from __future__ import annotations

import streamlit as st
from PIL import Image

from inspector.cam.layers.layouts import layer_name
from inspector.cam.report import Explanation, LayerProposal
from inspector.jobs.subjects import ChannelSeen
from inspector.render.colour_maps import colour_table
from inspector.render.overlay import overlay
from inspector.units import human_share
from inspector.web import jobs
from inspector.web.explain import sprites
from inspector.web.explain.looking import Subject
from inspector.web.explain.pictures import for_display
from inspector.web.explain.view import scale

_MOST, _A_ROW = 24, 6


def _place(row: sprites.Head, column: sprites.Head) -> int:
    return int(row.id) * _A_ROW + int(column.id)


def show_channels(subject: Subject, layer: LayerProposal, target: int, made: Explanation) -> None:
    """Small pictures; the chosen one large, with its numbers. made: a map of the same column."""
    colour_map = str(st.session_state.get("colour-map", "viridis"))
    found: tuple[ChannelSeen, ...] = jobs.ask(subject.job("channels", layer, target, made, colour_map, _MOST))
    key = f"channel-{subject.hand.sha256[:12]}-{layer_name(layer)}-{target}"
    chosen = min(int(st.session_state.get(key, 0)), len(found) - 1)
    total = sum(channel.contribution for channel in found)
    st.caption(
        f"The {len(found)} channels of {layer_name(layer)} that move the score most, by the mean over places of "
        "|gradient x activation|. Bright is where the channel's own output is highest."
    )
    thumbs: list[Image.Image | None] = [Image.fromarray(one.thumbnail) for one in found]
    table, large = st.columns([3, 2])
    with table:
        lines = [thumbs[start : start + _A_ROW] for start in range(0, len(thumbs), _A_ROW)]
        lines = [line + [None] * (_A_ROW - len(line)) for line in lines]
        sprites.picture_table(
            [
                sprites.Head(id=str(y), title=f"{y * _A_ROW + 1} to {min((y + 1) * _A_ROW, len(found))}")
                for y in range(len(lines))
            ],
            [sprites.Head(id=str(x), title="") for x in range(_A_ROW)],
            lines,
            chosen=(str(chosen // _A_ROW), str(chosen % _A_ROW)),
            key=f"{key}-table",
            called=lambda row, column: f"Channel {found[min(_place(row, column), len(found) - 1)].index}",
            on_choice=lambda row, column: st.session_state.update({key: int(row) * _A_ROW + int(column)}),
        )
    with large:
        channel = found[chosen]
        whole: Explanation = jobs.ask(subject.job("channel", layer, target, made, chosen, _MOST))
        picture, scaled = for_display(subject.picture, whole)
        st.image(
            overlay(picture, scaled, colour_map=colour_map),
            caption=f"Channel {channel.index}",
            width="stretch",
            alt=f"Channel {channel.index} over the picture",
        )
        low, high = channel.low, channel.high
        st.html(scale(colour_table(colour_map), "0 and below" if low < 0 else f"{0:.3g}", f"{high:.3g}"))
        share = channel.contribution / total if total else 0.0
        way = "raises" if channel.signed > 0 else "lowers"
        st.caption(
            f"Its output goes from {low:.3g} to {high:.3g}. On the whole it {way} the score; {human_share(share)} of "
            f"what the {len(found)} shown move."
        )
