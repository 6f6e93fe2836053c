"""What was measured of many tensors, side by side: twenty thousand of them are asked at once whether any is worth a
closer look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.weights.report import TensorStatistics

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
# More than any that are counted (`TensorStatistics.distinct`).
_UNCOUNTED = 257


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """A number for each tensor, under the names of `TensorStatistics`; ndim: its dimensions. outputs: the
    first size, 1 of a scalar. distinct: 257 where they are more, or were not counted. repeats: `Pages.repeated_run`."""

    numel: Counts
    ndim: Counts
    outputs: Counts
    finite: Counts
    zero: Counts
    minimum: Floats
    maximum: Floats
    mean: Floats
    std: Floats
    rms: Floats
    distinct: Counts
    repeats: Counts

    @property
    def whole(self) -> Flags:
        """Those that are finite throughout."""
        return np.equal(self.finite, self.numel)

    @property
    def varied(self) -> Flags:
        """Those that are not one number; those without a finite one too."""
        return np.not_equal(self.minimum, self.maximum)

    @property
    def largest(self) -> Floats:
        """The largest magnitude of each."""
        return np.maximum(np.abs(self.minimum), np.abs(self.maximum))


def columns_of(measured: Sequence[TensorStatistics]) -> Columns:
    """In their order."""
    return Columns(
        numel=np.array([t.numel for t in measured], np.int64),
        ndim=np.array([len(t.shape) for t in measured], np.int64),
        outputs=np.array([t.shape[0] if t.shape else 1 for t in measured], np.int64),
        finite=np.array([t.numel - t.nan - t.infinite for t in measured], np.int64),
        zero=np.array([t.zero for t in measured], np.int64),
        minimum=np.array([t.minimum for t in measured], np.float64),
        maximum=np.array([t.maximum for t in measured], np.float64),
        mean=np.array([t.mean for t in measured], np.float64),
        std=np.array([t.std for t in measured], np.float64),
        rms=np.array([t.rms for t in measured], np.float64),
        distinct=np.array([_UNCOUNTED if t.distinct is None else t.distinct for t in measured], np.int64),
        repeats=np.array([t.pages.repeated_run for t in measured], np.int64),
    )
