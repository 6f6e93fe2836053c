"""What is looked at, and the one forward pass that all of it comes from.

A look is kept for a few questions: it holds the graph of one forward. Maps are arithmetic on it and kept for many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from inspector.cam.inputs.picture import input_shape as shape_for
from inspector.cam.report import PLAIN, Crop, Explanation, LayerProposal, Made, Options, Preprocessing
from inspector.web import jobs, reports
from inspector.web.explain import pictures
from inspector.web.explain.answer import Naming
from inspector.web.explain.pictures import Picture
from inspector.web.session import Hand

if TYPE_CHECKING:
    from torch import Tensor

    from inspector.cam.describe import Setting
    from inspector.cam.live import Look
    from inspector.cam.spec import MapSpec
    from inspector.progress import Progress

# What takes less is not worth a question.
AT_ONCE_SECONDS = 2.5
FORWARDS_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A file, a picture, how it is prepared, and the layers whose outputs are kept."""

    hand: Hand
    picture: Picture
    preprocessing: Preprocessing
    layers: tuple[LayerProposal, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """What a result of it is kept under."""
        confirmed = reports.confirmed_of(self.hand)
        return self.hand.sha256, self.picture.sha256, self.preprocessing, self.layers, confirmed


@st.cache_resource(max_entries=16, show_spinner="Tracing one forward pass …")
def proposals(sha256: str, name: str, shape: tuple[int, int, int], confirmed: str = "") -> tuple[LayerProposal, ...]:
    """Layers worth explaining, the suggested one first. confirmed: as `reports.confirmed_of`."""
    from inspector.cam.layers.proposals import propose_layers

    model = reports.model_of(Hand(sha256=sha256, name=name))
    with reports.torch_lock:
        return propose_layers(model, shape)


@st.cache_resource(max_entries=64, show_spinner="Tracing one forward pass …")
def layer_named(sha256: str, name: str, shape: tuple[int, int, int], path: str, confirmed: str = "") -> LayerProposal:
    """A layer beyond the proposals. Raises NoSuchLayer, LayerNotSpatial."""
    from inspector.cam.layers.proposals import find_layer

    model = reports.model_of(Hand(sha256=sha256, name=name))
    with reports.torch_lock:
        return find_layer(model, path, shape)


def input_shape(picture: Picture, preprocessing: Preprocessing) -> tuple[int, int, int]:
    """(C, H, W) of the model's input; where nothing crops it has the picture's proportions."""
    size, _ = _crop(picture.sha256, preprocessing, picture)
    return shape_for(preprocessing, size)


def prepared(picture: Picture, preprocessing: Preprocessing) -> tuple[Tensor, Crop]:
    """((1, C, H, W), the rectangle of the picture that it shows)."""
    from inspector.cam.inputs.preprocess import prepare

    return prepare(pictures.decoded(picture), preprocessing)


def layers_with(subject: Subject, changed: LayerProposal) -> tuple[LayerProposal, ...]:
    """The kept layers, one of them as it was changed."""
    place = (changed.path, changed.call)
    return tuple(changed if (layer.path, layer.call) == place else layer for layer in subject.layers)


def look_at(subject: Subject) -> Look:
    """The one forward pass. Raises ExplainError and its kinds."""
    hand, picture = subject.hand, subject.picture
    confirmed = reports.confirmed_of(hand)
    return _look(hand.sha256, hand.name, picture.sha256, picture, subject.preprocessing, subject.layers, confirmed)


# A ResNet-50's graph is 90 MB.
@st.cache_resource(max_entries=3, show_spinner="Looking …")
def _look(
    sha256: str,
    name: str,
    picture_sha256: str,
    _picture: Picture,
    preprocessing: Preprocessing,
    layers: tuple[LayerProposal, ...],
    confirmed: str,
) -> Look:
    from inspector.cam.live import look

    model = reports.model_of(Hand(sha256=sha256, name=name))
    batch, _ = prepared(_picture, preprocessing)
    with reports.torch_lock:
        return look(model, batch, layers)


def spec_of(subject: Subject, method: str, layer: LayerProposal, options: Options = PLAIN) -> MapSpec:
    """How a map is made of it. layer: its layout may be changed; a fusion is of all layers."""
    from inspector.cam.spec import MapRequest

    seen = look_at(subject)
    layers = layers_with(subject, layer) if options.fusion else (layer,)
    _, *shape = seen.batch.shape
    return MapRequest(method=method, layers=layers, options=options).at(seen.model, (shape[0], shape[1], shape[2]))


def explained(subject: Subject, spec: MapSpec, target: int, naming: Naming) -> Explanation:
    """A map that needs no further pass, or few enough. target: a column of the answer.

    Raises ExplainError and its kinds.
    """
    return _named(subject, target, naming, _arithmetic(subject.key, spec, target, subject))


def explained_by_job(subject: Subject, spec: MapSpec, target: int, naming: Naming, *, title: str) -> Explanation | None:
    """A map of many passes: worked on behind the page with progress and Stop; None until it is there."""
    seen = look_at(subject)

    def work(progress: Progress) -> Made:
        return seen.make(spec, target, progress=progress)

    made = jobs.await_job(_job(subject, spec, target), Made, work, title=title)
    return None if made is None else _named(subject, target, naming, made)


def is_done(subject: Subject, spec: MapSpec, target: int) -> bool:
    """Whether a job for it has been started in this session, or its result is there."""
    key = _job(subject, spec, target)
    return jobs.is_known(key) or jobs.finished(key, Made) is not None


def _job(subject: Subject, spec: MapSpec, target: int) -> tuple[object, ...]:
    return "explain", subject.key, spec, target


@st.cache_resource(max_entries=160, show_spinner=False)
def _arithmetic(key: tuple[object, ...], spec: MapSpec, target: int, _subject: Subject) -> Made:
    seen = look_at(_subject)
    if not spec.is_arithmetic:
        return seen.make(spec, target)
    eigen = spec.options.eigen_smooth
    with reports.torch_lock:
        return spec.join([seen.map(spec.method, layer, target, eigen=eigen) for layer in spec.layers])


def _named(subject: Subject, target: int, naming: Naming, made: Made) -> Explanation:
    """As `explain` would have said it of the same question."""
    from inspector.cam.describe import explanation_of

    seen = look_at(subject)
    _, crop = _crop(subject.picture.sha256, subject.preprocessing, subject.picture)
    setting = setting_of(subject, naming)
    return explanation_of(seen.model, seen.batch, made, crop=crop, setting=setting, asked=seen.asked(target, crop))


def setting_of(subject: Subject, naming: Naming) -> Setting:
    """What its maps share with those of other pictures and checkpoints."""
    from inspector.cam.describe import Setting

    return Setting(preprocessing=subject.preprocessing, categories=naming.names, answer=naming.answer)


@st.cache_resource(max_entries=64, show_spinner=False)
def _crop(picture_sha256: str, preprocessing: Preprocessing, _picture: Picture) -> tuple[tuple[int, int], Crop]:
    from inspector.cam.inputs.picture import seen_crop, upright

    size = upright(pictures.decoded(_picture)).size
    return size, seen_crop(size, preprocessing)
