"""Larger questions and answers of jobs: sheets, strips, runs, evaluations."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inspector.cam.report import Explanation, Preprocessing
from inspector.cam.series import Stage
from inspector.cam.targets.answers import AnswerKind
from inspector.checkpoint.training_place import Place
from inspector.evaluate.report import PictureResult
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRef:
    """The checkpoints of a training: a file or archive in the store, or a folder that the server's owner opened.
    sha256: of the file, "" for a folder. digest: of what lies in the folder, "" before it was listed. within: nothing
    outside of it is read, None for a file."""

    name: str
    sha256: str
    digest: str = ""
    path: Path = field(compare=False)
    within: Path | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRef:
    """Pictures in class folders: an archive in the store, or a folder that the server's owner opened. sha256: of the
    archive, "" for a folder. digest: as `evaluate.labels.Listing` has it, "" before it was listed."""

    name: str
    sha256: str
    digest: str = ""
    path: Path = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFacts:
    """What lies there. classes: names of the class folders. Others: as `evaluate.labels.Listing`."""

    data: DataRef
    pictures: int
    classes: tuple[str, ...]
    empty: tuple[str, ...]
    left_out_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadFacts:
    """outputs: scores for each picture. seconds: of one pass of one picture."""

    outputs: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorstCase:
    """A wrong answer. picture, overlay: (h, w, 3), of a thumbnail's size; overlay None where there is no map of it.
    data: the picture's file."""

    result: PictureResult
    picture: NDArray[np.uint8]
    overlay: NDArray[np.uint8] | None
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerFacts:
    """asks: what is to be confirmed about the groups of a file's optimizers. refusal: why a repaired file cannot have
    them, "" where it can."""

    asks: tuple[str, ...] = ()
    refusal: str = ""
