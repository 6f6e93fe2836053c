"""What is looked at, and the one forward pass that all of it comes from.

A look is kept for a few questions: it holds the graph of one forward. Maps are arithmetic on it and kept for many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from inspector.cam.picture import input_shape as shape_for
from inspector.cam.report import Crop, Explanation, LayerProposal, Made, Options, Preprocessing
from inspector.web import jobs, reports
from inspector.web.explain import pictures
from inspector.web.explain.answer import Naming
from inspector.web.explain.pictures import Picture
from inspector.web.session import Hand

if TYPE_CHECKING:
    from torch import Tensor

    from inspector.cam.look import Look
    from inspector.cam.spec import MapSpec
    from inspector.progress import Progress

PLAIN = Options()
# A forward, and a backward that costs two.
_PASSES_OF_ONE = 3
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
        return self.hand.sha256, self.picture.sha256, self.preprocessing, self.layers


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one map is made of it. layer: its layout may be changed. target: a column of the answer."""

    method: str
    layer: LayerProposal
    target: int
    options: Options = PLAIN


@st.cache_resource(max_entries=16, show_spinner="Tracing one forward pass …")
def proposals(sha256: str, name: str, shape: tuple[int, int, int]) -> tuple[LayerProposal, ...]:
    """Layers worth explaining, the suggested one first."""
    from inspector.cam.layers import propose_layers

    model = reports.model_of(Hand(sha256=sha256, name=name))
    with reports.torch_lock:
        return propose_layers(model, shape)


@st.cache_resource(max_entries=64, show_spinner="Tracing one forward pass …")
def layer_named(sha256: str, name: str, shape: tuple[int, int, int], path: str) -> LayerProposal:
    """A layer beyond the proposals. Raises NoSuchLayer, LayerNotSpatial."""
    from inspector.cam.layers import find_layer

    model = reports.model_of(Hand(sha256=sha256, name=name))
    with reports.torch_lock:
        return find_layer(model, path, shape)


def input_shape(picture: Picture, preprocessing: Preprocessing) -> tuple[int, int, int]:
    """(C, H, W) of the model's input; where nothing crops it has the picture's proportions."""
    size, _ = _crop(picture.sha256, preprocessing, picture)
    return shape_for(preprocessing, size)


def prepared(picture: Picture, preprocessing: Preprocessing) -> tuple[Tensor, Crop]:
    """((1, C, H, W), the rectangle of the picture that it shows)."""
    from inspector.cam.preprocess import prepare

    return prepare(pictures.decoded(picture), preprocessing)


def layers_with(subject: Subject, changed: LayerProposal) -> tuple[LayerProposal, ...]:
    """The kept layers, one of them as it was changed."""
    place = (changed.path, changed.call)
    return tuple(changed if (layer.path, layer.call) == place else layer for layer in subject.layers)


def look_at(subject: Subject) -> Look:
    """The one forward pass. Raises ExplainError and its kinds."""
    hand, picture = subject.hand, subject.picture
    return _look(hand.sha256, hand.name, picture.sha256, picture, subject.preprocessing, subject.layers)


# A ResNet-50's graph is 90 MB.
@st.cache_resource(max_entries=3, show_spinner="Looking …")
def _look(
    sha256: str,
    name: str,
    picture_sha256: str,
    _picture: Picture,
    preprocessing: Preprocessing,
    layers: tuple[LayerProposal, ...],
) -> Look:
    from inspector.cam.look import look

    model = reports.model_of(Hand(sha256=sha256, name=name))
    batch, _ = prepared(_picture, preprocessing)
    with reports.torch_lock:
        return look(model, batch, layers)


def cost(subject: Subject, recipe: Recipe) -> tuple[int, float]:
    """(forward passes of one picture, seconds as tried out); (0, 0.0) for arithmetic.

    Raises ExplainError where the method is not for this model.
    """
    seen = look_at(subject)
    spec = spec_of(subject, recipe)
    if spec.is_arithmetic:
        return 0, 0.0
    from inspector.cam.combine import AUGMENTED_MAPS

    times = AUGMENTED_MAPS if recipe.options.augmented else 1
    passes, seconds = 0, 0.0
    for layer in spec.layers:
        own = seen.passes(recipe.method, layer)
        passes += times * (own or _PASSES_OF_ONE)
        seconds += times * (seen.seconds_of(recipe.method, layer) if own else _PASSES_OF_ONE * seen.forward_seconds)
    return passes, seconds


def seconds_of_one(subject: Subject, recipe: Recipe) -> float:
    """What one picture takes from its forward on, whichever method."""
    return max(cost(subject, recipe)[1], _PASSES_OF_ONE * look_at(subject).forward_seconds)


def explained(subject: Subject, recipe: Recipe, naming: Naming) -> Explanation:
    """A map that needs no further pass, or few enough. Raises ExplainError and its kinds."""
    return _named(subject, recipe, naming, _arithmetic(subject.key, recipe, subject))


def explained_by_job(subject: Subject, recipe: Recipe, naming: Naming, title: str) -> Explanation | None:
    """A map of many passes: worked on behind the page with progress and Stop; None until it is there."""
    seen = look_at(subject)
    key = ("explain", subject.key, recipe)

    def work(progress: Progress) -> Made:
        return seen.make(spec_of(subject, recipe), recipe.target, progress=progress)

    made = jobs.await_job(key, Made, work, title=title)
    return None if made is None else _named(subject, recipe, naming, made)


def is_done(subject: Subject, recipe: Recipe) -> bool:
    """Whether a job for it has been started in this session, or its result is there."""
    key = ("explain", subject.key, recipe)
    return jobs.is_known(key) or jobs.finished(key, Made) is not None


@st.cache_resource(max_entries=160, show_spinner=False)
def _arithmetic(key: tuple[object, ...], recipe: Recipe, _subject: Subject) -> Made:
    seen, spec = look_at(_subject), spec_of(_subject, recipe)
    if not spec.is_arithmetic:
        return seen.make(spec, recipe.target)
    eigen = spec.options.eigen_smooth
    with reports.torch_lock:
        return spec.join([seen.map(spec.method, layer, recipe.target, eigen=eigen) for layer in spec.layers])


def spec_of(subject: Subject, recipe: Recipe) -> MapSpec:
    """What the engine makes of it."""
    from inspector.cam.spec import MapSpec

    layers = layers_with(subject, recipe.layer) if recipe.options.fusion else (recipe.layer,)
    return MapSpec(method=recipe.method, layers=layers, options=recipe.options)


def _named(subject: Subject, recipe: Recipe, naming: Naming, made: Made) -> Explanation:
    """As `explain` would have said it of the same question."""
    from inspector.cam.describe import explanation_of

    seen = look_at(subject)
    _, crop = _crop(subject.picture.sha256, subject.preprocessing, subject.picture)
    return explanation_of(
        seen.model,
        seen.batch,
        made.maps,
        crop=crop,
        preprocessing=subject.preprocessing,
        categories=naming.names,
        asked=seen.asked(recipe.target, crop),
        answer=naming.answer,
        options=recipe.options,
        parts=made.parts,
    )


@st.cache_resource(max_entries=64, show_spinner=False)
def _crop(picture_sha256: str, preprocessing: Preprocessing, _picture: Picture) -> tuple[tuple[int, int], Crop]:
    from inspector.cam.picture import seen_crop, upright

    size = upright(pictures.decoded(_picture)).size
    return size, seen_crop(size, preprocessing)
