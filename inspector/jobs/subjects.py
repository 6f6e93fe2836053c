"""What jobs are about and what they answer, as it goes between server and workers: plain values, no torch.

Where a file lies takes no part in comparing: the same bytes are the same question.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inspector.cam.columns import Box, Kind
from inspector.cam.report import PLAIN, Crop, Explanation, LayerProposal, Options, Preprocessing
from inspector.cam.targets.answers import AnswerKind
from inspector.projector.report import Points, Projection
from inspector.remote.download import Part
from inspector.remote.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRef:
    """A person's own code that builds the network, which that person agreed to run.

    text: "code:model.py:build". folder: where it lies and runs. sha256: of the file that was agreed to. agreed: a word
    of that agreement alone, so that nobody else gets its results, and its worker is its own."""

    text: str
    folder: Path
    sha256: str
    agreed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRef:
    """A checkpoint in the store. name: as its visitor calls it. state: which state dict, None for the likeliest.
    confirmed: label of the architecture with what the visitor confirmed of it, "" for what was recognised.
    code: what builds the network instead, where nobody knows it."""

    sha256: str
    name: str
    path: Path = field(compare=False)
    state: tuple[str, ...] | None = None
    confirmed: str = ""
    code: CodeRef | None = None

    @property
    def apart(self) -> str:
        """The word of the worker that alone may build its model; "" where any worker may."""
        return self.code.agreed if self.code is not None else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRef:
    """A picture in the store."""

    sha256: str
    name: str = field(compare=False)
    path: Path = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    """A picture as it is shown. size: (width, height) of the upright original. pixels: (h, w, 3), no larger than a
    screen."""

    size: tuple[int, int]
    pixels: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A file, a picture, how it is prepared, and the layers whose outputs are kept."""

    file: FileRef
    picture: PictureRef
    preprocessing: Preprocessing
    layers: tuple[LayerProposal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How a map is to be made: a `MapRequest` before it is looked at whether that means anything."""

    method: str
    layers: tuple[LayerProposal, ...] = ()
    options: Options = PLAIN

    @classmethod
    def of(cls, made: Explanation) -> Wanted:
        """How this one was made."""
        return cls(method=made.method, layers=made.layers, options=made.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How the answer is read. names: of the classes in output order, () where nobody names them. answer: how the scores
    are meant."""

    names: tuple[str, ...] = ()
    answer: AnswerKind = AnswerKind.ONE


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodFacts:
    """What a page says of a method. arithmetic: whether a map takes no further pass. Others: as `cam.method.Method`."""

    id: str
    title: str
    says: str
    differs: str
    arithmetic: bool
    by_layer: bool
    per_channel: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Of a model that runs. weights_note: which of the file's weights. threads: that torch computes with. loaded: how
    many tensors of the file are in it, and what was done to them, a clause."""

    weights_note: str
    threads: int
    loaded: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """What one forward answered. kind: what a column is. logits: (columns,). shares: of each column under every way to
    read scores, None where that has none. pixels: for a segmentation, each class's share of the picture. boxes: of a
    detector. best: the column to begin with. size: (height, width) of the model's input. crop: what it saw."""

    kind: Kind
    logits: NDArray[np.float64]
    shares: tuple[tuple[AnswerKind, NDArray[np.float64] | None], ...]
    pixels: tuple[float, ...]
    boxes: tuple[Box, ...]
    best: int
    size: tuple[int, int]
    crop: Crop


@dataclass(frozen=True, slots=True, kw_only=True)
class MapCost:
    """passes: forward passes of one picture that a map takes beside the one that is kept. seconds: of these. whole: of
    a map of another such picture from its forward on."""

    passes: int
    seconds: float
    whole: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Thumbnails:
    """Small pictures (h, w, 3) in lines, None where there is no map. notes: (line, place, what is wrong with it)."""

    lines: tuple[tuple[NDArray[np.uint8] | None, ...], ...]
    notes: tuple[tuple[int, int, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChannelSeen:
    """One channel. contribution, signed: as `cam.live.Channel`. low, high: of its output. thumbnail: (h, w, 3)."""

    index: int
    contribution: float
    signed: float
    low: float
    high: float
    thumbnail: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionAsked:
    """How vectors become a map, as `inspector.projector.project.project` takes it."""

    method: str
    components: int = 2
    seed: int = 0
    clusters: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PicturesProjected:
    """Pictures as a map of what they are at a layer. thumbnails: (h, w, 3) by place on the map. answers: the column of
    each one's largest score, -1 where the model gives no scores. failed: (picture, why)."""

    points: Points
    projection: Projection
    thumbnails: tuple[NDArray[np.uint8], ...]
    answers: tuple[int, ...]
    failed: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a repair is held against: a file that loads into the target, a pair of an input and its output. folder:
    where code runs."""

    reference: FileRef | None = None
    pair: FileRef | None = None
    folder: Path | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchAsked:
    """A file behind an address, or several that are one. place: where it is written. most_nbytes: that are taken."""

    parts: tuple[Part, ...]
    policy: Policy
    place: Path
    # As the disk has room now: no part of what is asked, so that two who ask for one file wait for one.
    most_nbytes: int = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where and how a file is to be written. place: in a new folder. writer: its id. dtype: "" as stored. shard_nbytes:
    None for one file."""

    place: Path
    writer: str
    dtype: str = ""
    shard_nbytes: int | None = None
