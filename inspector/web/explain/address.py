"""What is chosen on the Explain page as it stands in the address: a link or a reload finds the same map again.

The address is taken up once for each session; from then on it follows what is chosen, in place: a step back leads to
the page before, not through every choice. Whoever made the link made up what stands in it, so that each value counts
only where it is one of those that the page offers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from inspector.units import shorten_middle
from inspector.web.address_line import write_address
from inspector.web.explain import pictures
from inspector.web.explain.choices import LINKED
from inspector.web.explain.slots import beside_slot, class_slot, layer_slot, method_slot
from inspector.web.session import Hand

_TAKEN = "explain-address"
#: The highest place that an outline can be drawn at: at 1 it would be a point.
OUTLINE_TO = 0.95
# A name of a layer or file; what is longer is none of ours.
_LONGEST = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One that stands in the session as it is. name: in the address. first: what is not written down. read: None for
    what is no such value. why: said of that."""

    name: str
    slot: str
    first: object
    read: Callable[[str], object | None]
    why: str = "none of these"


def _share(text: str) -> float | None:
    """A slider's value, one of its steps of a twentieth: no other is what somebody saw."""
    try:
        value = float(text)
    except ValueError:
        return None
    if not (math.isfinite(value) and 0 <= value <= 1):
        return None
    step = round(round(value * 20) / 20, 2)
    return step if math.isclose(step, value, abs_tol=1e-9) else None


def _index(text: str) -> int | None:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 8 else None


def settings(views: tuple[str, ...], colour_maps: tuple[str, ...], opacity: float) -> tuple[Setting, ...]:
    """How the map is drawn: the view, its colours, its opacity, its outline."""

    def outline(text: str) -> float | None:
        value = _share(text)
        return value if value is not None and value <= OUTLINE_TO else None

    return (
        Setting(name="view", slot="view", first=views[0], read=lambda text: text if text in views else None),
        Setting(
            name="colours",
            slot="colour-map",
            first=colour_maps[0],
            read=lambda text: text if text in colour_maps else None,
        ),
        Setting(name="opacity", slot="opacity", first=opacity, read=_share),
        Setting(name="outline", slot="threshold", first=0.0, read=outline),
    )


def take_up(hand: Hand, settings: tuple[Setting, ...]) -> None:
    """Once for each session: choose what the address says. Raises ReadError and ExplainError for a picture that is not
    here any more, or is none; the rest is chosen all the same."""
    if st.session_state.get(_TAKEN):
        return
    st.session_state[_TAKEN] = True
    asked = {name: shorten_middle(text, _LONGEST) for name, text in st.query_params.to_dict().items()}
    # What the page does not offer is said where it would be chosen.
    linked: dict[str, object] = {}
    st.session_state[LINKED] = linked
    for one in settings:
        text = asked.get(one.name, "")
        value = one.read(text)
        if value is not None:
            st.session_state[one.slot] = value
        elif text:
            linked[one.slot] = text
    if "picture" not in asked:
        return
    pictures.take_named(asked["picture"], asked.get("picture-name", ""))
    picture = pictures.picture_in_hand()
    if picture is None:
        return
    for slot, name in ((method_slot(hand), "method"), (layer_slot(hand), "layer")):
        if asked.get(name):
            linked[slot] = st.session_state[slot] = asked[name]
    for slot, name in ((class_slot(hand, picture), "class"), (beside_slot(hand, picture), "beside")):
        index = _index(asked.get(name, ""))
        if index is not None:
            st.session_state[slot] = index
        if asked.get(name):
            linked[slot] = asked[name] if index is None else index


def chosen(hand: Hand, picture: pictures.Picture, drawing: tuple[Setting, ...]) -> dict[str, str]:
    """What is chosen now, as the address says it; "" for what is as it begins."""
    state: Mapping[Any, Any] = st.session_state
    sample, beside = pictures.sample_id(picture), state.get(beside_slot(hand, picture))
    found = {
        "picture": sample or picture.sha256,
        "picture-name": "" if sample else picture.name,
        "method": str(state.get(method_slot(hand), "")),
        "layer": str(state.get(layer_slot(hand), "")),
        "class": str(state.get(class_slot(hand, picture), "")),
        "beside": "" if beside is None else str(beside),
    }
    for one in drawing:
        value = state.get(one.slot, one.first)
        found[one.name] = "" if value == one.first else str(value)
    return found


def follow(hand: Hand, picture: pictures.Picture, drawing: tuple[Setting, ...], prepared: Mapping[str, str]) -> None:
    """Write it into the browser's address, in place. prepared: what the visitor set of the preprocessing, as the
    address says it."""
    write_address({**chosen(hand, picture, drawing), **prepared}, key="explain-address-line")
