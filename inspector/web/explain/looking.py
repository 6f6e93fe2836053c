"""What is looked at, and the one forward pass that all of it comes from: both are jobs' business, asked for here."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.cam.inputs.picture import input_shape as shape_for
from inspector.cam.report import PLAIN, Explanation, LayerProposal, Options, Preprocessing
from inspector.jobs.job import Job
from inspector.jobs.subjects import MapCost, MethodFacts, Naming, Seen, Wanted
from inspector.jobs.subjects import Subject as Asked
from inspector.web import jobs, reports
from inspector.web.explain import pictures
from inspector.web.explain.pictures import Picture
from inspector.web.session import Hand

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
    def asked(self) -> Asked:
        """As jobs know it. Raises ReadError where the file is gone."""
        return Asked(
            file=reports.model_file(self.hand),
            picture=self.picture.ref,
            preprocessing=self.preprocessing,
            layers=self.layers,
        )

    def job(self, kind: str, *more: object) -> Job:
        """A question about it."""
        return Job(kind=kind, arguments=(self.asked, *more), near=self.hand.sha256)


def methods() -> tuple[MethodFacts, ...]:
    """Every method, the suggested one first."""
    found: tuple[MethodFacts, ...] = jobs.ask(Job(kind="methods"))
    return found


def method_named(name: str) -> MethodFacts:
    """One of them by its id."""
    return next(method for method in methods() if method.id == name)


def proposals(hand: Hand, shape: tuple[int, int, int]) -> tuple[LayerProposal, ...]:
    """Layers worth explaining, the suggested one first."""
    job = Job(kind="proposals", arguments=(reports.model_file(hand), shape), near=hand.sha256)
    found: tuple[LayerProposal, ...] = jobs.ask(job, says="Tracing one forward pass")
    return found


def layer_named(hand: Hand, shape: tuple[int, int, int], path: str) -> LayerProposal:
    """A layer beyond the proposals. Raises NoSuchLayer, LayerNotSpatial."""
    job = Job(kind="layer", arguments=(reports.model_file(hand), shape, path), near=hand.sha256)
    found: LayerProposal = jobs.ask(job, says="Tracing one forward pass")
    return found


def input_shape(picture: Picture, preprocessing: Preprocessing) -> tuple[int, int, int]:
    """(C, H, W) of the model's input; where nothing crops it has the picture's proportions."""
    return shape_for(preprocessing, pictures.drawn(picture).size)


def layers_with(subject: Subject, changed: LayerProposal) -> tuple[LayerProposal, ...]:
    """The kept layers, one of them as it was changed."""
    place = (changed.path, changed.call)
    return tuple(changed if (layer.path, layer.call) == place else layer for layer in subject.layers)


def look_at(subject: Subject) -> Seen:
    """What the one forward pass answered. Raises ExplainError and its kinds."""
    found: Seen = jobs.ask(subject.job("seen"), says="Looking at the picture")
    return found


def spec_of(subject: Subject, method: str, layer: LayerProposal, options: Options = PLAIN) -> Wanted:
    """How a map is made of it. layer: its layout may be changed; a fusion is of all layers."""
    layers = layers_with(subject, layer) if options.fusion else (layer,)
    return Wanted(method=method, layers=layers, options=options)


def is_arithmetic(wanted: Wanted) -> bool:
    """Whether the kept forward pass has all that such a map needs."""
    return method_named(wanted.method).arithmetic and not wanted.options.augmented


def cost_of(subject: Subject, wanted: Wanted) -> MapCost:
    """What a map takes, by a pass that is tried out now. Raises ExplainError where the method is not for this model."""
    found: MapCost = jobs.ask(subject.job("cost", wanted), says="Trying out one pass")
    return found


def explained(subject: Subject, wanted: Wanted, target: int, naming: Naming) -> Explanation:
    """A map that needs no further pass, or few enough. target: a column of the answer.

    Raises ExplainError and its kinds.
    """
    found: Explanation = jobs.ask(subject.job("map", wanted, target, naming), says="Making the heat map")
    return found


def explained_by_job(
    subject: Subject, wanted: Wanted, target: int, naming: Naming, *, title: str
) -> Explanation | None:
    """A map of many passes: worked on behind the page with progress and Stop; None until it is there."""
    found: Explanation | None = jobs.await_job(subject.job("long-map", wanted, target, naming), title=title)
    return found


def is_begun(subject: Subject, wanted: Wanted, target: int, naming: Naming) -> bool:
    """Whether a job for it has been started, or its result is there."""
    return jobs.is_known(subject.job("long-map", wanted, target, naming))
