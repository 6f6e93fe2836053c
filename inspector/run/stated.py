"""Plain numbers that a checkpoint states: loss, accuracy, learning rate of each group, counters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from inspector.checkpoint.data import read_array, to_float32
from inspector.checkpoint.dtypes import DTYPES, find_dtype
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.errors import InspectorError
from inspector.run.report import StatedSeries

_MOST, _MOST_TENSORS, _LONGEST = 200, 64, 200
# Deeper lies what belongs to one parameter: an optimizer counts the steps of each.
_DEEPEST = 2


def numbers_of(checkpoint: Checkpoint, weights: tuple[str, ...]) -> dict[str, float]:
    """By name, in the file's order: its own metadata, then tensors of one element beside the weights.

    weights: the path of these.
    """
    found: dict[str, float] = {}
    for name, text in checkpoint.own_metadata:
        number = _number(text)
        if number is not None and len(name) <= _LONGEST:
            found.setdefault(name, number)
    for tensor in _scalars(checkpoint, weights):
        number = _scalar(checkpoint, tensor)
        if number is not None:
            found.setdefault(".".join(tensor.path), number)
    return found


def series_of(stated: Sequence[Mapping[str, float]]) -> tuple[StatedSeries, ...]:
    """Of the numbers of each member those that are not the same in all, at most 200."""
    names = dict.fromkeys(name for one in stated for name in one)
    found = []
    for name in names:
        values = [one.get(name, math.nan) for one in stated]
        if len({value for value in values if not math.isnan(value)}) > 1:
            found.append(StatedSeries(name=name, values=np.array(values).tobytes()))
    return tuple(found[:_MOST])


def _number(text: str) -> float | None:
    # Python also reads "1_000" and "infinity", which no program writes for a number.
    if len(text) > 40 or not text or not (text[-1].isdigit() or text[-1] == "."):
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def _scalars(checkpoint: Checkpoint, weights: tuple[str, ...]) -> list[TensorInfo]:
    found = [
        tensor
        for tensor in checkpoint.tensors
        if tensor.numel == 1
        and tensor.layout == "strided"
        and 0 < len(tensor.path) <= _DEEPEST
        and tensor.path[: len(weights)] != weights
    ]
    return found[:_MOST_TENSORS]


def _scalar(checkpoint: Checkpoint, tensor: TensorInfo) -> float | None:
    dtype = find_dtype(tensor.dtype)
    if dtype is None or "complex" in tensor.dtype or dtype.bits < 8:
        return None
    try:
        raw = read_array(checkpoint, tensor).reshape(-1)
        number = float((raw if DTYPES[tensor.dtype].native else to_float32(raw, tensor.dtype))[0])
    except (InspectorError, OSError, ValueError, MemoryError):
        return None
    return number if math.isfinite(number) else None
