"""What TensorBoard is shown of the checkpoints of a training: one step each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inspector.checkpoint.dtypes import find_dtype
from inspector.compare.updates import Update, together
from inspector.events.png import encode_png
from inspector.events.write import EventWriter
from inspector.weights.fingerprint import fingerprint
from inspector.weights.histogram import histogram
from inspector.weights.report import TensorStatistics, WeightsReport

_BINS = 64
# Of the strip: a row of the picture for each weight, so wide a bin, and no more rows than one can tell apart.
_ROW, _COLUMN, _MOST_ROWS = 6, 8, 400
# Share of a row's elements in one bin that is drawn darkest.
_DARKEST = 0.1
_MOST_STATED = 50
# They say where the file stands on the axis, or when and how it was written.
_NOT_DRAWN = {"epoch", "current_epoch", "global_step", "global_steps", "step", "iteration", "iter", "version"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointStep:
    """One checkpoint at its place. step, wall_time: on TensorBoard's axes. about: Markdown about the file.

    stated: what its metadata say, as text. updates: since the checkpoint before, empty for the first.
    """

    step: int
    wall_time: float
    about: str
    weights: WeightsReport
    stated: tuple[tuple[str, str], ...] = ()
    updates: tuple[Update, ...] = ()


def choose_steps(places: Sequence[tuple[float | None, float | None]]) -> tuple[tuple[int, ...], str]:
    """A step for each file, and what it is: "step", "epoch", or "order" where the files do not all state either as
    different whole numbers. places: (epoch, step) of each, None where it is not stated."""
    for word, numbers in (("step", [step for _, step in places]), ("epoch", [epoch for epoch, _ in places])):
        whole = [int(n) for n in numbers if n is not None and n == int(n)]
        if len(whole) == len(places) == len(set(whole)):
            return tuple(whole), word
    return tuple(range(len(places))), "order"


def write_checkpoint(writer: EventWriter, at: CheckpointStep) -> None:
    """Histograms, root mean squares and shares of zeros of every floating tensor, what moved, what the file states, and
    the fingerprint of its weights."""
    step, when = at.step, at.wall_time
    writer.text("checkpoint/about", step, at.about, when)
    for name, value in _numbers(at.stated):
        writer.scalar(f"stated/{name}", step, value, when)
    floating = [tensor for tensor in at.weights.tensors if _is_floating(tensor)]
    not_finite = sum(tensor.nan + tensor.infinite for tensor in floating)
    writer.scalar("checkpoint/values that are not finite", step, not_finite, when)
    finite = sum(tensor.finite for tensor in floating)
    if finite:
        squares = sum(tensor.finite * tensor.rms**2 for tensor in floating if tensor.finite)
        writer.scalar("checkpoint/rms", step, math.sqrt(squares / finite), when)
    if at.updates:
        writer.scalar("checkpoint/update ratio", step, together(at.updates).ratio, when)
    for tensor in floating:
        if not tensor.finite:
            continue
        bars = histogram(tensor, bins=_BINS)
        writer.histogram(f"weights/{tensor.name}", step, bars.edges, bars.counts, when)
        writer.scalar(f"rms/{tensor.name}", step, tensor.rms, when)
        writer.scalar(f"share of zeros/{tensor.name}", step, tensor.zero / tensor.numel, when)
    for update in at.updates:
        writer.scalar(f"update ratio/{update.name}", step, update.ratio, when)
    _write_fingerprint(writer, at)


def _write_fingerprint(writer: EventWriter, at: CheckpointStep) -> None:
    """The strip as a picture, grey: a row for each weight, in the file's order from the top."""
    strip = fingerprint(at.weights)
    if not strip.names:
        return
    shares = np.asarray(strip.shares[:_MOST_ROWS])
    grey = np.rint(255 * (1 - np.clip(shares / _DARKEST, 0, 1) ** 0.5)).astype(np.uint8)
    large = grey.repeat(_ROW, axis=0).repeat(_COLUMN, axis=1)
    pixels = np.stack([large] * 3, axis=2)
    writer.image("fingerprint", at.step, encode_png(pixels), pixels.shape[:2], at.wall_time)


def _is_floating(tensor: TensorStatistics) -> bool:
    dtype = find_dtype(tensor.numbers_dtype)
    return dtype is not None and dtype.floating and tensor.numel > 0


def _numbers(stated: Sequence[tuple[str, str]]) -> list[tuple[str, float]]:
    """What is a finite number and no place in the training."""
    found: list[tuple[str, float]] = []
    for name, text in stated:
        try:
            value = float(text)
        except ValueError:
            continue
        if math.isfinite(value) and name and name not in _NOT_DRAWN and len(name) <= 200:
            found.append((name, value))
    return found[:_MOST_STATED]
