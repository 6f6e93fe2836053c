"""A few numbers of one tensor as they are: the first ones, a corner of it, and the filters of a first layer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import to_float32
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.weights.decoded import find_decoder
from inspector.weights.decoded.types import TensorBytes

FIRST, CORNER, FILTERS = 24, 64, 64
# What is read for it, from the tensor's beginning.
_READ_NUMEL = 4 << 20
# Kernels that show something as a picture, and the channels that make one.
_SIDES = range(3, 65)
_CHANNELS = (1, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Corner:
    """The first rows and columns of the tensor as a matrix (rows: axis 0, columns: all others, row-major).

    rows, columns: of the corner. of_rows, of_columns: of the matrix. values: rows x columns float32, native byte order.
    """

    rows: int
    columns: int
    of_rows: int
    of_columns: int
    values: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The first filters of a convolution over a picture. values: count x height x width x channels float32."""

    count: int
    of: int
    height: int
    width: int
    channels: int
    values: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorLook:
    """first: the first elements in row-major order. corner: of two or more dimensions. filters: where they are a
    picture's. Each None or empty where the tensor has none."""

    first: tuple[float, ...]
    corner: Corner | None
    filters: Filters | None


def look_at(checkpoint: Checkpoint, tensor: TensorInfo) -> TensorLook:
    """What is decoded to be measured is decoded here too. Raises ReadError where the tensor has no numbers, CorruptFile
    where its bytes are cut off."""
    decoded = find_decoder(tensor).decode(TensorBytes(checkpoint=checkpoint, tensor=tensor, at_once=_READ_NUMEL))
    chunk = next(iter(decoded.chunks), None)
    if chunk is None:
        return TensorLook(first=(), corner=None, filters=None)
    values = np.asarray(chunk) if DTYPES[decoded.dtype].native else to_float32(chunk, decoded.dtype)
    return TensorLook(
        first=tuple(values[:FIRST].tolist()),
        corner=_corner(values, decoded.shape),
        filters=_filters(values, decoded.shape),
    )


def _corner(values: NDArray[np.generic], shape: tuple[int, ...]) -> Corner | None:
    if len(shape) < 2:
        return None
    columns = math.prod(shape[1:])
    rows = min(CORNER, len(values) // columns)
    if not rows:
        return None
    width = min(CORNER, columns)
    held = _single(values[: rows * columns]).reshape(rows, columns)[:, :width]
    return Corner(rows=rows, columns=width, of_rows=shape[0], of_columns=columns, values=held.tobytes())


def _filters(values: NDArray[np.generic], shape: tuple[int, ...]) -> Filters | None:
    if len(shape) != 4 or shape[1] not in _CHANNELS or shape[2] not in _SIDES or shape[3] not in _SIDES:
        return None
    size = math.prod(shape[1:])
    count = min(FILTERS, shape[0], len(values) // size)
    held = _single(values[: count * size]).reshape(count, *shape[1:]).transpose(0, 2, 3, 1)
    return Filters(count=count, of=shape[0], height=shape[2], width=shape[3], channels=shape[1], values=held.tobytes())


def _single(values: NDArray[np.generic]) -> NDArray[np.float32]:
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32)
