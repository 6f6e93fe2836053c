"""Histograms and quantiles of one tensor from its value table, without another read.

A cell that lies across the border of two bins is split between them in proportion, as if its elements were spread
evenly over it. Exact for types whose every value is a cell of its own (bfloat16, float8, 8-bit integers).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inspector.errors import UsageError
from inspector.weights.report import Histogram, TensorStatistics
from inspector.weights.table import EXACT_DTYPES, finite_cells


def histogram(statistics: TensorStatistics, *, bins: int = 128, span: tuple[float, float] | None = None) -> Histogram:
    """Equal bins over the finite values.

    span: lowest and highest edge; minimum to maximum when not given (half a unit to each side of a constant tensor,
    as numpy does), and values outside it are left out. No counts at all when no element is finite.
    Raises UsageError for fewer than one bin or an empty span.
    """
    if bins < 1:
        raise UsageError(f"A histogram needs at least 1 bin, not {bins}.")
    if span is not None and not span[0] < span[1]:
        raise UsageError(f"A histogram cannot run from {span[0]:g} to {span[1]:g}: give the lower edge first.")
    low, high = span or _whole_span(statistics)
    edges = np.linspace(low, high, bins + 1)
    return Histogram(edges=tuple(edges.tolist()), counts=tuple(counts_between(statistics, edges).tolist()))


def counts_between(statistics: TensorStatistics, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Elements between neighbouring edges: (len(edges) - 1,). The last bin includes its upper edge."""
    low, high, counts = _cells(statistics)
    if not len(counts):
        return np.zeros(len(edges) - 1)
    below = _count_below(low, high, counts, edges)
    below[-1] += _count_on(low, high, counts, float(edges[-1]))
    return np.asarray(np.diff(below), np.float64)


def quantiles(statistics: TensorStatistics, probabilities: Sequence[float]) -> tuple[float, ...]:
    """The values below which the given shares (0 to 1) of the finite elements lie; NaN when none is finite.

    Within 2^-7 of the value, mostly far nearer; exact (numpy's "inverted_cdf") where cells are points.
    """
    low, high, counts = _cells(statistics)
    wanted = np.asarray(probabilities, np.float64)
    if np.any((wanted < 0) | (wanted > 1)):
        raise UsageError("A quantile lies between 0 and 1.")
    if not len(counts):
        return (float("nan"),) * len(wanted)
    total = np.cumsum(counts)
    # The first cell that reaches the wanted number of elements, at least one.
    rank = np.maximum(wanted * total[-1], 1.0)
    cell = np.minimum(np.searchsorted(total, rank - 1e-9 * rank, side="left"), len(counts) - 1)
    inside = np.clip((rank - (total[cell] - counts[cell])) / counts[cell], 0.0, 1.0)
    found = low[cell] + (high[cell] - low[cell]) * inside
    found = np.where(wanted == 0, statistics.minimum, np.where(wanted == 1, statistics.maximum, found))
    return tuple(found.tolist())


def _whole_span(statistics: TensorStatistics) -> tuple[float, float]:
    if not statistics.finite:
        return 0.0, 1.0
    if statistics.minimum == statistics.maximum:
        return statistics.minimum - 0.5, statistics.maximum + 0.5
    return statistics.minimum, statistics.maximum


def _cells(statistics: TensorStatistics) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Finite cells, ascending, cut to the exact minimum and maximum."""
    low, high, counts = finite_cells(statistics.table, exact=statistics.numbers_dtype in EXACT_DTYPES)
    if not len(counts):
        return low, high, counts
    # float64 values were rounded to find their cell and may lie beyond float32: the outermost cells reach to them.
    if statistics.maximum > high[-1]:
        high[-1] = statistics.maximum
    if statistics.minimum < low[0]:
        low[0] = statistics.minimum
    first, last = statistics.minimum, statistics.maximum
    return np.minimum(np.maximum(low, first), last), np.minimum(np.maximum(high, first), last), counts


def _count_below(
    low: NDArray[np.float64], high: NDArray[np.float64], counts: NDArray[np.int64], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How many elements are below each edge, a cell across an edge counting by its part below it."""
    before = np.zeros(len(counts) + 1)
    np.cumsum(counts, out=before[1:])
    # Cells do not overlap, so at most one of them, the last to begin below an edge, lies across it.
    begun = np.searchsorted(low, edges, side="left")
    last = np.maximum(begun - 1, 0)
    width = high[last] - low[last]
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = np.where(width > 0, np.minimum(np.maximum((edges - low[last]) / width, 0.0), 1.0), 1.0)
    return np.where(begun > 0, before[last] + counts[last] * inside, 0.0)


def _count_on(low: NDArray[np.float64], high: NDArray[np.float64], counts: NDArray[np.int64], edge: float) -> float:
    """How many elements are on the edge itself, which no cell below it counts."""
    return float(counts[(low == high) & (low == edge)].sum())
