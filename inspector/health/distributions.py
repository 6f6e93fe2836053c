"""Whether a tensor's values are of a given distribution, by its statistics: edge, spread, Kolmogorov-Smirnov."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.health.initialisers import Family, Initialiser
from inspector.health.thresholds import Thresholds
from inspector.weights.report import TensorStatistics
from inspector.weights.table import to_arrays

Values = NDArray[np.float64]

# How far rounding can carry a number beyond an edge, relative to it: half a last bit, and as much again for slack.
ROUNDING = {"float64": 1e-6, "float32": 1e-6, "float16": 2.0**-10, "bfloat16": 2.0**-8}


def stored_as(t: TensorStatistics) -> str:
    """The type whose rounding its numbers have gone through: shorter than the file's where all of them fit in it."""
    return t.fits or t.dtype


def within_edge(t: TensorStatistics, bound: float) -> bool:
    """No element beyond the bound, and the largest as near to it as the largest of so many is.

    The edge is what training blurs first: one step of SGD carries some elements over it.
    """
    return bool(within_edge_of(max(abs(t.minimum), abs(t.maximum)), bound, t.numel, stored_as(t)))


def within_edge_of(largest: Any, bound: float, numel: int, stored: str) -> Any:
    """The same by the largest magnitude, a number, or an array of those of many tensors of one size and type."""
    slack = ROUNDING[stored]
    # Of n uniform elements none is in the outermost 10 / n with probability exp(-10).
    return (bound * (1 - 10 / numel - slack) <= largest) & (largest <= bound * (1 + slack))


def has_spread(t: TensorStatistics, of: Initialiser, limits: Thresholds) -> bool:
    """Mean and standard deviation are the initialiser's, within sampling error and the rounding of its type."""
    return bool(spread_matches(t.mean, t.std, of, t.numel, stored_as(t), limits))


def spread_matches(mean: Any, std: Any, of: Initialiser, numel: int, stored: str, limits: Thresholds) -> Any:
    """The same by mean and standard deviation, numbers, or arrays of those of many tensors of one size and type."""
    slack = ROUNDING[stored]
    # Variance of the sample's standard deviation: kurtosis 1.8 of a uniform, 3 of a normal distribution.
    share = math.sqrt((0.8 if of.family is Family.UNIFORM else 2.0) / (4 * numel))
    errors = limits.initial_errors
    return (abs(std / of.std - 1) <= errors * share + slack) & (
        abs(mean) <= errors * of.std / math.sqrt(numel) + slack * of.std / 8
    )


def distance_scaled(t: TensorStatistics, of: Initialiser) -> float:
    """sqrt(n) times the Kolmogorov-Smirnov distance at the borders of the value table's cells.

    Borders lie where rounding to the element type parts the values of two cells. Infinite without finite elements only.
    """
    if t.finite != t.numel or not t.numel:
        return math.inf
    low, high, counts = _intervals(t)
    cdf = _cdf(of)
    before = np.concatenate([[0.0], np.cumsum(counts)])
    share = before / before[-1]
    apart = np.maximum(np.abs(cdf(low) - share[:-1]), np.abs(cdf(high) - share[1:]))
    return float(apart.max() * math.sqrt(t.numel))


def _intervals(t: TensorStatistics) -> tuple[Values, Values, NDArray[np.int64]]:
    """(cells,) ascending: where each begins and ends before rounding, and its count."""
    codes, counts = to_arrays(t.table)
    size = (codes & 0x7FFF).astype(np.uint16)
    inner, outer = (_border(end, t) for end in (size, size + np.uint16(1)))
    negative = codes >= 0x8000
    low, high = np.where(negative, -outer, inner), np.where(negative, -inner, outer)
    order = np.lexsort((high, low))
    return low[order], high[order], counts[order]


def _border(size: NDArray[np.uint16], t: TensorStatistics) -> Values:
    """(cells,): the magnitude from which on values are rounded into the cell of that code."""
    stored = stored_as(t)
    value = _magnitude(size, t.table.of)
    if t.table.of or stored == "bfloat16":
        # Every code is a number of the type: what lies nearer to it than to the one before.
        return (value + _magnitude(np.maximum(size, 1) - np.uint16(1), t.table.of)) / 2
    if stored == "float16":
        mantissa, exponent = np.frexp(value)
        # Eight of its numbers to a cell; the one before a power of two is half as far away as the one after it.
        last_bit = np.maximum(np.ldexp(1.0, exponent - 11 - (mantissa == 0.5)), 2.0**-24)
        return np.asarray(np.maximum(value - last_bit / 2, 0.0), np.float64)
    return value


def _magnitude(size: NDArray[np.uint16], of: str) -> Values:
    numbers = size.view(of) if of else (size.astype(np.uint32) << 16).view(np.float32)
    return np.asarray(numbers, np.float64)


def _cdf(of: Initialiser) -> Callable[[Values], Values]:
    if of.family is Family.UNIFORM:
        return lambda x: np.clip((x / of.scale + 1) / 2, 0.0, 1.0)
    if of.family is Family.NORMAL:
        return lambda x: _normal_cdf(x / of.scale)
    tail = 0.5 * math.erfc(math.sqrt(2))
    return lambda x: np.clip((_normal_cdf(x / of.scale) - tail) / (1 - 2 * tail), 0.0, 1.0)


def _normal_cdf(z: Values) -> Values:
    return np.array([0.5 * math.erfc(-one / math.sqrt(2)) for one in z.tolist()], np.float64)
