"""Heat maps for the Explain page: pictures, the model's input, cached explanations, downloads."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import streamlit as st
from PIL import Image

from inspector.cam.report import Explanation, LayerProposal, Preprocessing, Score
from inspector.errors import InspectorError, UsageError
from inspector.units import human_share
from inspector.web import reports
from inspector.web.guard import show_error
from inspector.web.samples import FOLDER
from inspector.web.session import Hand
from inspector.web.text import escaped, plain

_PICTURE = "picture"
_SHOWN_SIDE = 1400
_LARGEST = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture in hand. data: the file's bytes as they came."""

    name: str
    data: bytes

    @property
    def sha256(self) -> str:
        """Of the file's bytes."""
        return hashlib.sha256(self.data).hexdigest()


def sample_pictures() -> list[Path]:
    """The pictures that come with the samples."""
    return sorted((FOLDER / "pictures").glob("*.png"))


def take_sample(path: Path) -> None:
    """One of the pictures that come with the samples, when its button is clicked."""
    take_picture(path.name, path.read_bytes())


def picture_in_hand() -> Picture | None:
    """The picture this session looks at; it stays when the page changes."""
    held = st.session_state.get(_PICTURE)
    return held if isinstance(held, Picture) else None


def take_picture(name: str, data: bytes) -> Picture:
    """Take it in hand after reading it once. Raises ExplainError for what is no picture."""
    from inspector.cam.picture import open_picture

    open_picture(data)
    picture = Picture(name=name, data=data)
    st.session_state[_PICTURE] = picture
    return picture


# A picture of 100 megapixels, the most that is taken, is 300 MB here.
@st.cache_resource(max_entries=3, show_spinner=False)
def _decoded(sha256: str, _data: bytes) -> Image.Image:
    from inspector.cam.picture import open_picture

    return open_picture(_data)


def decoded(picture: Picture) -> Image.Image:
    """Its pixels."""
    return _decoded(picture.sha256, picture.data)


@st.cache_resource(max_entries=16, show_spinner=False)
def _shown(sha256: str, _data: bytes) -> Image.Image:
    from inspector.cam.picture import upright

    picture = upright(_decoded(sha256, _data))
    longest = max(picture.size)
    if longest <= _SHOWN_SIDE:
        return picture
    width, height = (max(1, round(side * _SHOWN_SIDE / longest)) for side in picture.size)
    return picture.resize((width, height), Image.Resampling.BILINEAR, reducing_gap=2.0)


def for_display(picture: Picture, explanation: Explanation) -> tuple[Image.Image, Explanation]:
    """Picture and explanation no larger than a screen, so that a move of the slider costs milliseconds.

    Downloads keep every pixel: they are made from the originals.
    """
    small = _shown(picture.sha256, picture.data)
    crop = explanation.crop
    across, down = small.width / crop.picture_width, small.height / crop.picture_height
    scaled = replace(
        crop,
        left=crop.left * across,
        top=crop.top * down,
        width=crop.width * across,
        height=crop.height * down,
        picture_width=small.width,
        picture_height=small.height,
    )
    return small, replace(explanation, crop=scaled)


def unknowns(preprocessing: Preprocessing, explanation: Explanation) -> str:
    """What this heat map rests on that nobody stated, in one or two sentences; "" when all is stated."""
    says = []
    if preprocessing.assumed:
        says.append(
            f"How this model's pictures were prepared is not stated anywhere; {preprocessing.source}. "
            "If the answer looks wrong, change it under Preprocessing."
        )
    if all(score.name is None for score in explanation.scores):
        says.append("The file names no classes, so they are called by their index.")
    return " ".join(says)


def inferred(hand: Hand) -> Preprocessing:
    """What the model's pictures were prepared with, as far as anybody says."""
    from inspector.cam.preprocess import infer_preprocessing

    return infer_preprocessing(reports.recognition_of(hand), reports.checkpoint_of(hand))


def input_shape(preprocessing: Preprocessing) -> tuple[int, int, int]:
    """(C, H, W) as the layers are traced with; 224 where nothing crops."""
    resize = preprocessing.resize
    size = preprocessing.crop or (resize if isinstance(resize, tuple) else (resize or 224, resize or 224))
    return preprocessing.channels, size[0], size[1]


@st.cache_resource(max_entries=16, show_spinner="Tracing one forward pass …")
def layers(sha256: str, name: str, shape: tuple[int, int, int]) -> tuple[LayerProposal, ...]:
    """Layers worth explaining, the suggested one first."""
    from inspector.cam.layers import propose_layers

    model = reports.model_of(Hand(sha256=sha256, name=name))
    with reports.torch_lock:
        return propose_layers(model, shape)


def choose_class(scores: tuple[Score, ...], key: str) -> int:
    """One of the likeliest classes; the likeliest first."""
    labels = {score.index: f"{class_label(score)} · {human_share(score.probability)}" for score in scores}
    chosen = st.selectbox("Class", list(labels), format_func=lambda i: labels[i], key=key)
    return scores[0].index if chosen is None else int(chosen)


def edit(start: Preprocessing, digest: str) -> Preprocessing:
    """Preprocessing as it is taken, open to change."""
    with st.expander(f"Preprocessing · {plain(start.source)}", icon=":material/tune:"):
        size, crop, kind = st.columns(3)
        shorter = start.resize[0] if isinstance(start.resize, tuple) else start.resize or 0
        resize = size.number_input("Shorter side (0: keep)", 0, _LARGEST, shorter, key=f"resize-{digest}")
        cut = crop.number_input(
            "Centre crop (0: none)", 0, _LARGEST, start.crop[0] if start.crop else 0, key=f"crop-{digest}"
        )
        choices = ("bilinear", "bicubic")
        interpolation = kind.selectbox(
            "Interpolation", choices, choices.index(start.interpolation), key=f"kind-{digest}"
        )
        left, right = st.columns(2)
        mean = left.text_input("Mean per channel", ", ".join(f"{m:g}" for m in start.mean), key=f"mean-{digest}")
        std = right.text_input("Deviation per channel", ", ".join(f"{s:g}" for s in start.std), key=f"std-{digest}")
        try:
            return edited(
                start, resize=int(resize), crop=int(cut), mean=mean or "", std=std or "", interpolation=interpolation
            )
        except InspectorError as error:
            show_error(error)
            return start


def explained(
    hand: Hand, picture: Picture, preprocessing: Preprocessing, *, layer: str, target: int | None, method: str
) -> Explanation:
    """One heat map. Raises ExplainError and its kinds."""
    return _explained(hand.sha256, hand.name, picture.sha256, picture.data, preprocessing, layer, target, method)


@st.cache_resource(max_entries=32, show_spinner="Looking …")
def _explained(
    sha256: str,
    name: str,
    picture_sha256: str,
    _data: bytes,
    preprocessing: Preprocessing,
    layer: str,
    target: int | None,
    method: str,
) -> Explanation:
    from inspector.cam.classes import class_names
    from inspector.cam.explain import explain

    hand = Hand(sha256=sha256, name=name)
    model = reports.model_of(hand)
    names = class_names(reports.recognition_of(hand), reports.checkpoint_of(hand))
    with reports.torch_lock:
        return explain(
            model,
            _decoded(picture_sha256, _data),
            preprocessing=preprocessing,
            layer=layer,
            target=target,
            method=method,
            categories=names,
        )


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


def score_bars(scores: tuple[Score, ...]) -> str:
    """Top classes as bars, as HTML."""
    rows = "".join(
        f"<span>{escaped(class_label(score))}</span>"
        f'<i><i style="width:{100 * score.probability:.2f}%"></i></i>'
        f'<span title="logit {score.logit:.6g}">{human_share(score.probability)}</span>'
        for score in scores
    )
    return f'<div class="mi-scores">{rows}</div>'


def class_label(score: Score) -> str:
    """Its name, else its index."""
    return score.name if score.name else f"class {score.index}"


def maps_npz(explanation: Explanation) -> bytes:
    """heat and raw as float32 arrays."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, heat=explanation.heat, raw=explanation.raw)
    return buffer.getvalue()
