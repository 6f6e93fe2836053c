"""What the event files of one run hold, after TensorBoard's rule for steps that were written twice.

Points of a series lie packed: a log of a million points takes 24 bytes of memory each, not 200.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from inspector.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarSeries:
    """One tag's numbers over steps, which ascend strictly.

    steps: int64. values, wall_times (seconds since 1970): float64; all packed in native byte order. Iterating gives
    (step, value, wall time). title, description: as the writer called it, "" where it did not.
    replaced: points that were written over by later ones at the same or an earlier step.
    """

    tag: str
    title: str = ""
    description: str = ""
    steps: bytes = b""
    values: bytes = b""
    wall_times: bytes = b""
    replaced: int = 0

    def __len__(self) -> int:
        return len(self.steps) // 8

    def __iter__(self) -> Iterator[tuple[int, float, float]]:
        return zip(
            memoryview(self.steps).cast("q"),
            memoryview(self.values).cast("d"),
            memoryview(self.wall_times).cast("d"),
            strict=True,
        )

    @property
    def last(self) -> float:
        """The value at the last step."""
        return float(memoryview(self.values).cast("d")[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramPoint:
    """A histogram at one step. buckets: (n, 3) float64 in native byte order: left edge, right edge, count."""

    step: int
    wall_time: float
    buckets: bytes

    def __iter__(self) -> Iterator[tuple[float, float, float]]:
        flat = memoryview(self.buckets).cast("d")
        return zip(flat[0::3], flat[1::3], flat[2::3], strict=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """A precision-recall curve at one step, at evenly spaced thresholds from 0 to 1.

    rows: (6, thresholds) float64 in native byte order: true positives, false positives, true negatives, false
    negatives, precision, recall.
    """

    step: int
    wall_time: float
    thresholds: int
    rows: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageAt:
    """Where an encoded image lies in a file of the log. file: its place in `EventLog.files`. The sizes are what the
    writer states; 0 where it states none."""

    file: int
    offset: int
    nbytes: int
    width: int = 0
    height: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePoint:
    """The images of one step."""

    step: int
    wall_time: float
    images: tuple[ImageAt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPoint:
    """The texts of one step. nbytes: of all of them; `texts` is shorter where that is more than is kept."""

    step: int
    wall_time: float
    texts: tuple[str, ...]
    nbytes: int


Point = TypeVar("Point", HistogramPoint, CurvePoint, ImagePoint, TextPoint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series(Generic[Point]):
    """One tag's points over steps, which ascend strictly; the other fields as in `ScalarSeries`."""

    tag: str
    title: str = ""
    description: str = ""
    points: tuple[Point, ...] = ()
    replaced: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherValues:
    """What is counted and not kept. plugin: who shows it in TensorBoard, "" where nothing says so."""

    plugin: str
    tags: int
    values: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFile:
    """One file. read_nbytes: how far its records could be read. records: those that are whole. damaged: those whose
    checksum does not agree. version: as it states it ("brain.Event:2"). writer: the program that wrote it, "" where it
    does not say so. graph_nbytes: of its largest graph."""

    name: str
    nbytes: int
    read_nbytes: int = 0
    records: int = 0
    damaged: int = 0
    version: str = ""
    writer: str = ""
    graph_nbytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLog:
    """One run: its event files in TensorBoard's order, read as one. Series are in the order of their tags.

    hyperparameters: as the hparams plugin has them, text, number or truth. others: values that are not kept.
    first_step .. last_wall_time: over everything that was read, None without any.
    restarts: steps from which the training says that it went on again.
    """

    name: str
    files: tuple[EventFile, ...]
    scalars: tuple[ScalarSeries, ...] = ()
    histograms: tuple[Series[HistogramPoint], ...] = ()
    curves: tuple[Series[CurvePoint], ...] = ()
    images: tuple[Series[ImagePoint], ...] = ()
    texts: tuple[Series[TextPoint], ...] = ()
    hyperparameters: tuple[tuple[str, str | float | bool], ...] = ()
    others: tuple[OtherValues, ...] = ()
    first_step: int | None = None
    last_step: int | None = None
    first_wall_time: float | None = None
    last_wall_time: float | None = None
    restarts: tuple[int, ...] = ()
    findings: tuple[Finding, ...] = ()

    def scalar(self, tag: str) -> ScalarSeries | None:
        """The series of that tag."""
        return next((series for series in self.scalars if series.tag == tag), None)
