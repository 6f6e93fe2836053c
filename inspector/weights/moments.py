"""Sums that any cut of the data leaves the same.

A tile of 2^18 elements is a table of 512 columns. Each column is added up from top to bottom, then the columns in
numpy's pairwise order (Higham 1993, "The accuracy of floating point summation"), all in float64: numpy and a compiled
loop make the very same additions. The spread is taken around the tile's own mean, so that nothing cancels where the
mean is large. Tiles are put together by the rule of Chan, Golub and LeVeque (1979) with math.fsum, which rounds once
and in no order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Columns of a tile.
WIDTH = 512
#: Elements of a tile; four of them are 2^20.
TILE = 1 << 18
#: Tiles of a leaf: what may be cut is cut between leaves, and sums of rows and columns are rounded once for each.
LEAF = 64 * TILE
#: Elements of a row of a tensor that are added up side by side, and how far in float32.
LANES = 64
STRETCH = 512 * LANES


@dataclass(frozen=True, slots=True)
class Moments:
    """count, mean and the sum of squared differences from the mean of some finite elements."""

    count: int = 0
    mean: float = 0.0
    spread: float = 0.0

    def merged(self, other: Moments) -> Moments:
        """Of both together: Chan, Golub and LeVeque (1979), eq. 2.1."""
        if not self.count or not other.count:
            return other if not self.count else self
        count = self.count + other.count
        delta = other.mean - self.mean
        mean = self.mean + delta * (other.count / count)
        spread = self.spread + other.spread + delta * delta * (self.count / count) * other.count
        return Moments(count, mean, spread)

    def std_and_rms(self) -> tuple[float, float]:
        """Population standard deviation and root mean square; NaN without elements."""
        if not self.count:
            return math.nan, math.nan
        variance = max(0.0, self.spread / self.count)
        return math.sqrt(variance), math.sqrt(variance + self.mean * self.mean)


def column_sums(values: NDArray[np.floating], absent: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """(n,) -> (WIDTH,): the sum of each column of a tile that is filled row by row. absent: (n,), what is left out."""
    return _summed(values, absent, None)


def column_spreads(
    values: NDArray[np.floating], mean: float, absent: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """The same of the squared differences from the mean."""
    return _summed(values, absent, mean)


def add_row(sums: NDArray[np.float64], row: NDArray[np.floating], mean: float | None = None) -> None:
    """Adds a last, short row of a tile to the sums of its columns."""
    own = row.astype(np.float64)
    if mean is not None:
        own -= mean
        np.square(own, out=own)
    sums[: len(own)] += own


def _summed(values: NDArray[np.floating], absent: NDArray[np.bool_] | None, mean: float | None) -> NDArray[np.float64]:
    rows = len(values) // WIDTH
    if not rows and absent is None:
        sums: NDArray[np.float64] = np.zeros(WIDTH)
        with np.errstate(over="ignore", invalid="ignore"):
            add_row(sums, values, mean)
        return sums
    own = values[: rows * WIDTH].reshape(rows, WIDTH).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if mean is not None:
            own -= mean
            np.square(own, out=own)
        if absent is not None:
            own[absent[: rows * WIDTH].reshape(rows, WIDTH)] = 0.0
        sums = np.add.reduce(own, axis=0)
        rest = values[rows * WIDTH :]
        if absent is not None:
            rest = rest.astype(np.float64)
            gone = absent[rows * WIDTH :]
            rest[gone] = 0.0 if mean is None else mean
        if len(rest):
            add_row(sums, rest, mean)
    return sums


def moments_of(tiles: Sequence[tuple[int, float, float]]) -> Moments:
    """Of all tiles together: of each the finite elements, their sum, their spread around its own mean."""
    count = sum(n for n, _, _ in tiles)
    if not count:
        return Moments()
    mean = _sum([total for _, total, _ in tiles]) / count
    spread = _sum([own + n * (total / n - mean) ** 2 for n, total, own in tiles])
    return Moments(count, mean, spread)


def _sum(numbers: list[float]) -> float:
    """math.fsum, infinite or NaN where it would raise."""
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):
        return float(np.sum(numbers))
