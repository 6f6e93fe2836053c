"""The model's input: how a picture becomes it, as far as anybody says, and open to change."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from inspector.cam.report import Preprocessing
from inspector.errors import InspectorError, UsageError
from inspector.render.prepared import preprocessing_words
from inspector.units import shorten_middle
from inspector.web import reports
from inspector.web.explain.address import Setting
from inspector.web.explain.choices import linked_to, no_longer_linked, say_gone, settled
from inspector.web.explain.pictures import CHANGING, Picture, choose_picture, offer_pictures, picture_in_hand
from inspector.web.guard import show_error
from inspector.web.session import Hand
from inspector.web.text import plain

_LARGEST = 4096
_INTERPOLATIONS = ("bilinear", "bicubic")
_CLOSE = "close-picture-choice"
# Of the line that says what is settled, so that it stays one on most screens.
_NAME_CHARACTERS, _SOURCE_CHARACTERS = 32, 24


def inferred(hand: Hand) -> Preprocessing:
    """What the model's pictures were prepared with, as far as anybody says."""
    from inspector.cam.inputs.preprocess import infer_preprocessing

    return infer_preprocessing(reports.recognition_of(hand), reports.checkpoint_of(hand))


def take_picture(line: DeltaGenerator) -> Picture | None:
    """The picture in hand. Before there is one the choice stands on the page, afterwards it is folded into the line."""
    picture = picture_in_hand()
    if picture is None:
        if choose_picture() is not None:
            st.rerun()
        return None
    if st.session_state.pop(_CLOSE, False):
        st.session_state[CHANGING] = False
    with line, settled(shorten_middle(picture.name, _NAME_CHARACTERS), icon=":material/image:", key=CHANGING):
        chosen = offer_pictures()
    if chosen is not None and chosen.sha256 != picture.sha256:
        # Its box was drawn in this run, and cannot be folded before the next.
        st.session_state[_CLOSE] = True
        st.rerun()
    return chosen


def settings(start: Preprocessing, digest: str) -> tuple[Setting, ...]:
    """What can be changed of it, as the boxes hold it and as a link says it."""

    def size(text: str) -> int | None:
        is_number = text.isdecimal() and text.isascii() and len(text) < 8
        return int(text) if is_number and int(text) <= _LARGEST else None

    def means(text: str) -> str | None:
        with suppress(UsageError):
            return _text(_numbers(text, "mean", start.channels))
        return None

    def deviations(text: str) -> str | None:
        with suppress(UsageError):
            return _text(_deviations(text, start.channels))
        return None

    first, counts = _values(start), f"{start.channels} numbers, one per channel"
    reads: dict[str, tuple[Callable[[str], object | None], str]] = {
        "resize": (size, f"no side from 0 to {_LARGEST}"),
        "crop": (size, f"no crop from 0 to {_LARGEST}"),
        "interpolation": (
            lambda text: text if text in _INTERPOLATIONS else None,
            "no interpolation that is known here",
        ),
        "mean": (means, f"no mean of {counts}"),
        "std": (deviations, f"no deviation of {counts} and above 0"),
    }
    return tuple(
        Setting(name=name, slot=f"{name}-{digest}", first=first[name], read=read, why=why)
        for name, (read, why) in reads.items()
    )


def as_linked(start: Preprocessing, used: Preprocessing) -> dict[str, str]:
    """What was set of it, as an address says it; "" for what is as it begins."""
    first = _values(start)
    return {name: "" if value == first[name] else str(value) for name, value in _values(used).items()}


def tell_gone(start: Preprocessing, used: Preprocessing, digest: str) -> None:
    """Where a link asked for what is no preprocessing of this model: the boxes that would say it are folded."""
    now = _values(used)
    for one in settings(start, digest):
        gone = linked_to(one.slot, ())
        if gone is not None:
            say_gone(gone, f"this is {now[one.name]}", why=one.why)


def edit(start: Preprocessing, digest: str) -> Preprocessing:
    """Preprocessing as it is taken, in a few words and open to change."""
    _begin(start, digest)
    drawn = _as_chosen(start, digest)
    says = f"{preprocessing_words(drawn)} ({_in_short(drawn)})"
    with settled(says, icon=":material/help:" if drawn.assumed else ":material/tune:"):
        if drawn.assumed:
            st.caption(
                plain(
                    f"How this model's pictures were prepared is not stated anywhere; {drawn.source}. If the answer "
                    "looks wrong, change it here."
                )
            )
        else:
            st.caption(plain(f"{drawn.source[0].upper()}{drawn.source[1:]}."))
        size, crop, kind = st.columns(3)
        resize = size.number_input(
            "Shorter side (0: keep)", 0, _LARGEST, persist_state="session", **_box("resize", digest)
        )
        cut = crop.number_input("Centre crop (0: none)", 0, _LARGEST, persist_state="session", **_box("crop", digest))
        interpolation = kind.selectbox(
            "Interpolation", _INTERPOLATIONS, persist_state="session", **_box("interpolation", digest)
        )
        left, right = st.columns(2)
        mean = left.text_input("Mean per channel", persist_state="session", **_box("mean", digest))
        std = right.text_input("Deviation per channel", persist_state="session", **_box("std", digest))
        try:
            return edited(
                start, resize=int(resize), crop=int(cut), mean=mean or "", std=std or "", interpolation=interpolation
            )
        except InspectorError as error:
            show_error(error)
            return start


def _begin(start: Preprocessing, digest: str) -> None:
    """What nobody set follows what is said of the model, which may be another than in the run before."""
    for one in settings(start, digest):
        before = f"{one.slot}-at-first"
        if one.slot not in st.session_state or st.session_state[one.slot] == st.session_state.get(before, one.first):
            st.session_state[one.slot] = one.first
        st.session_state[before] = one.first


def _in_short(drawn: Preprocessing) -> str:
    """Whose word it is, for the line; the whole of it is behind "change"."""
    if drawn.assumed:
        return "assumed"
    return drawn.source if len(drawn.source) <= _SOURCE_CHARACTERS else drawn.source.split(" with ")[0].split(" by ")[0]


def _box(name: str, digest: str) -> dict[str, Any]:
    """Of one box: where its value stands, and that what a link asked for there is over once it is changed."""
    slot = f"{name}-{digest}"
    return {"key": slot, "on_change": no_longer_linked, "args": (slot,)}


def _values(one: Preprocessing) -> dict[str, object]:
    """{name in the address: what its box holds}; of a height and a width the height."""
    return {
        "resize": (one.resize[0] if isinstance(one.resize, tuple) else one.resize) or 0,
        "crop": one.crop[0] if one.crop else 0,
        "interpolation": one.interpolation,
        "mean": _text(one.mean),
        "std": _text(one.std),
    }


def _text(numbers: tuple[float, ...]) -> str:
    """As short as they can be written without becoming others."""
    return ", ".join(f"{one:g}" if float(f"{one:g}") == one else repr(one) for one in numbers)


def _as_chosen(start: Preprocessing, digest: str) -> Preprocessing:
    """What the boxes hold, which are drawn below; as it begins where they hold none."""
    resize, crop, mean, std, kind = (
        st.session_state[f"{name}-{digest}"] for name in ("resize", "crop", "mean", "std", "interpolation")
    )
    try:
        return edited(start, resize=int(resize), crop=int(crop), mean=str(mean), std=str(std), interpolation=str(kind))
    except InspectorError:
        return start


def edited(start: Preprocessing, *, resize: int, crop: int, mean: str, std: str, interpolation: str) -> Preprocessing:
    """The numbers as the visitor changed them; resize and crop of 0 mean none. Raises UsageError for other counts."""
    means, deviations = _numbers(mean, "mean", start.channels), _deviations(std, start.channels)
    changed = replace(
        start,
        resize=resize or None if not isinstance(start.resize, tuple) or resize != start.resize[0] else start.resize,
        crop=((crop, crop) if crop else None) if not start.crop or crop != start.crop[0] else start.crop,
        mean=means,
        std=deviations,
        interpolation=interpolation,
    )
    return start if changed == start else replace(changed, source="set on this page", assumed=False)


def _numbers(text: str, what: str, channels: int) -> tuple[float, ...]:
    try:
        numbers = tuple(float(piece) for piece in text.replace(",", " ").split())
    except ValueError:
        numbers = ()
    if len(numbers) != channels or not all(np.isfinite(numbers)):
        raise UsageError(f"The {what} needs {channels} numbers, one per channel.", hint="Write 0.485, 0.456, 0.406.")
    return numbers


def _deviations(text: str, channels: int) -> tuple[float, ...]:
    numbers = _numbers(text, "deviation", channels)
    if min(numbers) <= 0:
        raise UsageError("A standard deviation has to be above 0.")
    return numbers
