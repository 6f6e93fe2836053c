"""How far each tensor moved between two checkpoints of a training."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
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
    """Of one tensor, or of all together, in float64: moved is ||after - before||, before is ||before||.

    flips: numbers that changed their sign, of n. Where one number is not finite, neither are moved and before.
    """

    name: str
    moved: float
    before: float
    flips: int = 0
    n: int = 0

    @property
    def ratio(self) -> float:
        """moved / before; infinite where the tensor was zero and is no longer."""
        return self.moved / self.before if self.before else math.inf if self.moved else 0.0


class UpdateSums:
    """What was found in two tensors so far, whose numbers come in pieces."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._moved = self._before = 0.0
        self._flips = self._n = 0

    def add(self, before: NDArray[np.float64], after: NDArray[np.float64]) -> None:
        """The next pieces, equally long."""
        with np.errstate(over="ignore", invalid="ignore"):
            apart = after - before
            self._moved += float(np.dot(apart, apart))
            self._before += float(np.dot(before, before))
        # By signs: a product of two small numbers may be zero.
        self._flips += int(np.count_nonzero((before < 0) & (after > 0) | (before > 0) & (after < 0)))
        self._n += len(after)

    def result(self) -> Update:
        """Of all of them."""
        moved, before = (math.sqrt(square) if square >= 0 else square for square in (self._moved, self._before))
        return Update(name=self._name, moved=moved, before=before, flips=self._flips, n=self._n)


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
        if old is None or old.shape != tensor.shape or not (is_real(old) and is_real(tensor)):
            continue
        try:
            sums = UpdateSums(tensor.name)
            for one, two in zip(_values(before[0], old), _values(after[0], tensor), strict=True):
                sums.add(one, two)
        except (InspectorError, OSError, ValueError, MemoryError):
            continue
        update = sums.result()
        if math.isfinite(update.moved + update.before):
            found.append(update)
    return tuple(found)


def together(updates: Iterable[Update]) -> Update:
    """All of them as one vector."""
    updates = tuple(updates)
    return Update(
        name="",
        moved=math.sqrt(sum(update.moved**2 for update in updates)),
        before=math.sqrt(sum(update.before**2 for update in updates)),
        flips=sum(update.flips for update in updates),
        n=sum(update.n for update in updates),
    )


def is_real(tensor: TensorInfo) -> bool:
    """Whether its numbers are real floating-point ones, which a training moves."""
    dtype = find_dtype(tensor.dtype)
    return dtype is not None and dtype.floating and "complex" not in dtype.name


def _values(checkpoint: Checkpoint, tensor: TensorInfo) -> Iterator[NDArray[np.float64]]:
    kind = DTYPES[tensor.dtype]
    for chunk in iter_chunks(checkpoint, tensor, chunk_nbytes=_AT_ONCE * kind.itemsize):
        yield (np.asarray(chunk) if kind.native else to_float32(chunk, tensor.dtype)).astype(np.float64)
