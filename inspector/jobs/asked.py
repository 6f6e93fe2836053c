"""Larger questions and answers of jobs: sheets and runs."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.cam.report import Explanation, Preprocessing
from inspector.cam.series import Stage
from inspector.cam.targets.answers import AnswerKind
from inspector.checkpoint.training_place import Place
from inspector.jobs.subjects import FileRef, Naming, PictureRef, Subject, Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetMade:
    """sheet: PNG. table: CSV. count: of the maps. failed: (picture, why)."""

    sheet: bytes
    table: str
    count: int
    failed: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A checkpoint of a run. place: as its file states it."""

    file: FileRef
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAsked:
    """One picture through checkpoints. own, stated, own_answer, architecture: as `cam.series.Common`. target: the class
    asked about, None for each one's best."""

    subject: Subject
    members: tuple[Member, ...]
    wanted: Wanted
    target: int | None
    naming: Naming
    architecture: str
    own: Preprocessing | None
    stated: tuple[str, ...]
    own_answer: AnswerKind | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunMade:
    """stages: in the order of the run, those without a map too. agreement: of each map with the last one."""

    stages: tuple[Stage, ...]
    agreement: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StripAsked:
    """kept: the stages that have a map. drawn: their maps on the scale that they are shown with."""

    picture: PictureRef
    kept: tuple[Stage, ...]
    drawn: tuple[Explanation, ...]
    one_scale: bool
    colour_map: str
    opacity: float
