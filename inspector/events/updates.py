"""How far each tensor moved between two checkpoints of a training."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import iter_chunks, to_float32
from inspector.checkpoint.dtypes import DTYPES, find_dtype
from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.errors import InspectorError
from inspector.progress import Progress, silent

_AT_ONCE = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Of one tensor, or of all together: moved is ||after - before||, before is ||before||, in float64."""

    name: str
    moved: float
    before: float

    @property
    def ratio(self) -> float:
        """moved / before; infinite where the tensor was zero and is no longer."""
        return self.moved / self.before if self.before else math.inf if self.moved else 0.0


def measure_updates(
    before: tuple[Checkpoint, StateDict], after: tuple[Checkpoint, StateDict], *, progress: Progress = silent
) -> tuple[Update, ...]:
    """Of the floating tensors that both have by name and shape, in the later one's order; those that cannot be read, or
    are not finite, are left out. Types may differ. Two pieces of 2^18 numbers are held at a time."""
    earlier = {tensor.name: tensor for tensor in before[1].tensors}
    found: list[Update] = []
    for number, tensor in enumerate(after[1].tensors):
        progress(number, len(after[1].tensors), tensor.name)
        old = earlier.get(tensor.name)
        if old is None or old.shape != tensor.shape or not (_is_real(old) and _is_real(tensor)):
            continue
        try:
            moved, size = _squares(_values(before[0], old), _values(after[0], tensor))
        except (InspectorError, OSError, ValueError, MemoryError):
            continue
        if math.isfinite(moved + size):
            found.append(Update(name=tensor.name, moved=math.sqrt(moved), before=math.sqrt(size)))
    return tuple(found)


def together(updates: tuple[Update, ...]) -> Update:
    """All of them as one vector."""
    return Update(
        name="",
        moved=math.sqrt(sum(update.moved**2 for update in updates)),
        before=math.sqrt(sum(update.before**2 for update in updates)),
    )


def _is_real(tensor: TensorInfo) -> bool:
    dtype = find_dtype(tensor.dtype)
    return dtype is not None and dtype.floating and "complex" not in dtype.name


def _values(checkpoint: Checkpoint, tensor: TensorInfo) -> Iterator[NDArray[np.float64]]:
    kind = DTYPES[tensor.dtype]
    for chunk in iter_chunks(checkpoint, tensor, chunk_nbytes=_AT_ONCE * kind.itemsize):
        yield (np.asarray(chunk) if kind.native else to_float32(chunk, tensor.dtype)).astype(np.float64)


def _squares(before: Iterator[NDArray[np.float64]], after: Iterator[NDArray[np.float64]]) -> tuple[float, float]:
    moved = size = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for old, new in zip(before, after, strict=True):
            apart = new - old
            moved += float(np.dot(apart, apart))
            size += float(np.dot(old, old))
    return moved, size
