"""Event files that TensorBoard opens: scalars, histograms, precision-recall curves, texts, images, a graph.

The same calls make the same bytes: no clock is asked, and no name of a machine is written. Each value has the form that
current TensorBoard and older readers both know: a scalar is a simple_value (float32, as TensorBoard serves it), an
image a Summary.Image; histograms, curves and texts are tensors of their plugins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inspector.errors import UsageError
from inspector.events.graph_def import graph_def
from inspector.events.records import MOST_RECORD_NBYTES, record
from inspector.events.tensors import doubles, strings
from inspector.events.wire import double, message, single, text, varint
from inspector.graph.types import Graph
from inspector.new_files import new_file
from inspector.units import human_bytes

_WRITER = "model-inspector"
_CURVE_VERSION, _RGBA = 0, 4
_STEPS = range(-(1 << 63), 1 << 63)
_SIDES = range(1, 1 << 31)


class EventWriter:
    """Writes events into a file that is open; `event_file` makes one.

    wall_time: seconds since 1970 of every event that is not given its own. Each method raises UsageError for what
    TensorBoard could not show.
    """

    def __init__(self, file: BinaryIO, wall_time: float) -> None:
        self._file = file
        self._wall_time = _time(wall_time)
        self._described: set[str] = set()
        self._write(text(3, "brain.Event:2"), None)
        self._write(message(10, text(1, _WRITER)), None)

    def scalar(self, tag: str, step: int, value: float, wall_time: float | None = None) -> None:
        """One number; NaN and infinity are numbers, too."""
        self._value(tag, step, single(2, value), "scalars", wall_time)

    def histogram(
        self, tag: str, step: int, edges: Sequence[float], counts: Sequence[float], wall_time: float | None = None
    ) -> None:
        """edges: (bins + 1,), ascending and finite. counts: (bins,), not negative; fractions are kept."""
        borders, heights = np.asarray(edges, np.float64), np.asarray(counts, np.float64)
        if borders.ndim != 1 or heights.shape != (max(len(borders) - 1, 0),) or not len(borders):
            raise UsageError(f'A histogram of {heights.size} counts has {heights.size + 1} edges: "{tag}" has others.')
        if not (np.isfinite(borders).all() and np.isfinite(heights).all()):
            raise UsageError(f'The histogram "{tag}" has edges or counts that are not finite.')
        if (np.diff(borders) < 0).any() or (heights < 0).any():
            raise UsageError(f'The histogram "{tag}" has edges that do not ascend, or negative counts.')
        buckets = np.stack([borders[:-1], borders[1:], heights], axis=1)
        self._value(tag, step, message(8, doubles(buckets)), "histograms", wall_time)

    def pr_curve(self, tag: str, step: int, counts: ArrayLike, wall_time: float | None = None) -> None:
        """counts: (4, thresholds), whole numbers: true positives, false positives, true negatives, false negatives, at
        thresholds that are evenly spaced from 0 to 1. Precision is 0 where nothing is called positive, and recall
        where nothing is."""
        found = np.asarray(counts, np.float64)
        if found.ndim != 2 or found.shape[0] != 4 or found.shape[1] < 2:
            raise UsageError(f'The curve "{tag}" needs four rows of counts at two thresholds or more.')
        if not np.isfinite(found).all() or (found < 0).any():
            raise UsageError(f'The curve "{tag}" has counts that are negative or not finite.')
        hits, false_alarms, _, missed = found
        precision = hits / np.maximum(hits + false_alarms, 1.0)
        recall = hits / np.maximum(hits + missed, 1.0)
        rows = np.concatenate([found, [precision, recall]])
        content = varint(1, _CURVE_VERSION) + varint(2, found.shape[1])
        self._value(tag, step, message(8, doubles(rows)), "pr_curves", wall_time, content)

    def text(self, tag: str, step: int, markdown: str, wall_time: float | None = None) -> None:
        """Text, which TensorBoard shows as Markdown."""
        encoded = markdown.encode("utf-8", "replace")
        self._value(tag, step, message(8, strings([encoded], scalar=True)), "text", wall_time)

    def image(self, tag: str, step: int, png: bytes, size: tuple[int, int], wall_time: float | None = None) -> None:
        """png: an encoded image (PNG, JPEG or GIF), written as it is. size: (height, width) of it."""
        height, width = size
        if height not in _SIDES or width not in _SIDES or not png:
            raise UsageError(f'The image "{tag}" has no bytes, or the size {height}x{width}.')
        parts = (varint(1, height), varint(2, width), varint(3, _RGBA), message(4, png))
        self._value(tag, step, message(4, *parts), "images", wall_time)

    def graph(self, graph: Graph, wall_time: float | None = None) -> None:
        """What a network computes, for the page Graphs: one to a run."""
        self._write(message(4, graph_def(graph)), wall_time)

    def _value(
        self, tag: str, step: int, value: bytes, plugin: str, wall_time: float | None, content: bytes = b""
    ) -> None:
        if not tag or step not in _STEPS:
            raise UsageError(f'"{tag[:100]}" at step {step}: a value needs a tag, and a step of 64 bits.')
        parts = [text(1, tag), value]
        # What is written the older way says by its field what it is for.
        if plugin in ("histograms", "pr_curves", "text") and tag not in self._described:
            self._described.add(tag)
            parts.append(message(9, message(1, text(1, plugin), message(2, content))))
        self._write(message(5, message(1, *parts)), wall_time, step)

    def _write(self, what: bytes, wall_time: float | None, step: int = 0) -> None:
        if len(what) > MOST_RECORD_NBYTES:
            raise UsageError(f"An event takes at most {human_bytes(MOST_RECORD_NBYTES)}, not {human_bytes(len(what))}.")
        when = self._wall_time if wall_time is None else _time(wall_time)
        self._file.write(record(double(1, when) + (varint(2, step) if step else b"") + what))


@contextmanager
def event_file(folder: Path, wall_time: float, *, overwrite: bool = False) -> Iterator[EventWriter]:
    """A new event file in a folder that exists, which has its name once it is whole.

    Its name is made of the wall time, so that one folder holds several. Raises OSError, FileExistsError for one of the
    same second.
    """
    destination = folder / f"events.out.tfevents.{max(0, int(_time(wall_time))):010d}.{_WRITER}"
    with new_file(destination, overwrite=overwrite) as temporary, temporary.open("wb") as file:
        yield EventWriter(file, wall_time)


def count_at_thresholds(scores: ArrayLike, positive: ArrayLike, *, thresholds: int = 201) -> NDArray[np.float64]:
    """(4, thresholds): what `EventWriter.pr_curve` takes, of probabilities.

    scores: (n,) in [0, 1]; an example is called positive at a threshold that its score reaches. positive: (n,), whether
    it is. Raises UsageError for other scores.
    """
    given, truth = np.asarray(scores, np.float64).reshape(-1), np.asarray(positive, bool).reshape(-1)
    if len(given) != len(truth) or thresholds < 2 or not ((given >= 0) & (given <= 1)).all():
        raise UsageError("A curve needs a score from 0 to 1 and a truth for each example, and two thresholds or more.")
    borders = np.linspace(0.0, 1.0, thresholds)
    # How many thresholds a score reaches; what reaches k of them is counted at the first k.
    reached = np.searchsorted(borders, given, side="right")
    counts = np.zeros((4, thresholds))
    for row, chosen in ((0, truth), (1, ~truth)):
        at_least = np.bincount(reached[chosen], minlength=thresholds + 1)[::-1].cumsum()[::-1]
        counts[row] = at_least[1:]
        counts[3 - row] = chosen.sum() - counts[row]
    return counts


def _time(wall_time: float) -> float:
    if not math.isfinite(wall_time) or abs(wall_time) > 1e12:
        raise UsageError(f"{wall_time} is no time in seconds since 1970.")
    return float(wall_time)
