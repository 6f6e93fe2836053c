"""The model's input: how a picture becomes it, as far as anybody says, and open to change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from inspector.cam.report import Preprocessing
from inspector.errors import InspectorError, UsageError
from inspector.render.prepared import preprocessing_words
from inspector.units import shorten_middle
from inspector.web import reports
from inspector.web.explain.choices import settled
from inspector.web.explain.pictures import CHANGING, Picture, choose_picture, offer_pictures, picture_in_hand
from inspector.web.guard import show_error
from inspector.web.session import Hand
from inspector.web.text import plain

_LARGEST = 4096
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


def edit(start: Preprocessing, digest: str) -> Preprocessing:
    """Preprocessing as it is taken, in a few words and open to change."""
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
        shorter = start.resize[0] if isinstance(start.resize, tuple) else start.resize or 0
        resize = size.number_input(
            "Shorter side (0: keep)", 0, _LARGEST, shorter, key=f"resize-{digest}", persist_state="session"
        )
        cut = crop.number_input(
            "Centre crop (0: none)",
            0,
            _LARGEST,
            start.crop[0] if start.crop else 0,
            key=f"crop-{digest}",
            persist_state="session",
        )
        choices = ("bilinear", "bicubic")
        interpolation = kind.selectbox(
            "Interpolation", choices, choices.index(start.interpolation), key=f"kind-{digest}", persist_state="session"
        )
        left, right = st.columns(2)
        mean = left.text_input(
            "Mean per channel", ", ".join(f"{m:g}" for m in start.mean), key=f"mean-{digest}", persist_state="session"
        )
        std = right.text_input(
            "Deviation per channel",
            ", ".join(f"{s:g}" for s in start.std),
            key=f"std-{digest}",
            persist_state="session",
        )
        try:
            return edited(
                start, resize=int(resize), crop=int(cut), mean=mean or "", std=std or "", interpolation=interpolation
            )
        except InspectorError as error:
            show_error(error)
            return start


def _in_short(drawn: Preprocessing) -> str:
    """Whose word it is, for the line; the whole of it is behind "change"."""
    if drawn.assumed:
        return "assumed"
    return drawn.source if len(drawn.source) <= _SOURCE_CHARACTERS else drawn.source.split(" with ")[0].split(" by ")[0]


def _as_chosen(start: Preprocessing, digest: str) -> Preprocessing:
    """What the boxes hold, which are drawn below; as it begins before they were drawn once and where they hold none."""
    resize, crop, mean, std, kind = (
        st.session_state.get(f"{name}-{digest}") for name in ("resize", "crop", "mean", "std", "kind")
    )
    if resize is None or crop is None or mean is None or std is None or kind is None:
        return start
    try:
        return edited(start, resize=int(resize), crop=int(crop), mean=str(mean), std=str(std), interpolation=str(kind))
    except InspectorError:
        return start


def edited(start: Preprocessing, *, resize: int, crop: int, mean: str, std: str, interpolation: str) -> Preprocessing:
    """The numbers as the visitor changed them; resize and crop of 0 mean none. Raises UsageError for other counts."""
    means, deviations = _numbers(mean, "mean", start.channels), _numbers(std, "deviation", start.channels)
    if min(deviations) <= 0:
        raise UsageError("A standard deviation has to be above 0.")
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
