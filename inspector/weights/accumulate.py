"""From chunks of one tensor's elements to its statistics, in one pass and flat memory.

Two ways, by element size. Types of 8 and 16 bits have at most 65,536 values: count the codes and compute everything
from the counts, exactly. Wider types: minimum, maximum and moments chunk by chunk, merged by the rule of Chan, Golub
and LeVeque (1979), "Updating formulae and a pairwise algorithm for computing sample variances", which stays right
where the mean is large against the spread; a sum of squares would not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.weights.report import ValueTable
from inspector.weights.table import CELLS, cell_of, pack


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What was measured over a run of elements; the fields mean what they mean in `TensorStatistics`."""

    numel: int
    minimum: float
    maximum: float
    mean: float
    std: float
    rms: float
    nan: int
    infinite: int
    zero: int
    first_non_finite: int | None
    table: ValueTable


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


def accumulate_codes(chunks: Iterable[NDArray[Any]], values: NDArray[np.float64]) -> Numbers:
    """Statistics of a type with few values, exact but for the last rounding.

    chunks: 1-D arrays of 8- or 16-bit elements. values: (256,) or (65536,), the value of each bit pattern.
    """
    code_type = np.uint8 if len(values) == 256 else np.uint16
    counter = _CodeCounter(len(values))
    odd_codes = _odd_codes(values)
    first: int | None = None
    seen = 0
    for chunk in chunks:
        codes = chunk.view(code_type)
        if counter.add(codes, watch=odd_codes) and first is None:
            odd = ~np.isfinite(values[codes])
            first = seen + int(np.argmax(odd)) if odd.any() else None
        seen += codes.size

    present, count = counter.result()
    value = values[present]
    finite = np.isfinite(value)
    return _numbers(
        numel=seen,
        extremes=(float(value[finite].min()), float(value[finite].max())) if finite.any() else None,
        moments=_weighted_moments(value[finite], count[finite]),
        nan=int(count[np.isnan(value)].sum()),
        infinite=int(count[np.isinf(value)].sum()),
        zero=int(count[value == 0].sum()),
        first=first,
        table=pack(cell_of(value), count),
    )


def accumulate_values(chunks: Iterable[NDArray[Any]]) -> Numbers:
    """Statistics of 32- and 64-bit floats and integers (integers beyond 2^53 are rounded to float64).

    Squares of float64 values beyond 1e154 overflow: std and rms are then infinite.
    """
    tally = _Tally()
    for chunk in chunks:
        if chunk.size:
            tally.take(chunk)
    return _numbers(
        numel=tally.seen,
        extremes=(tally.minimum, tally.maximum) if tally.moments.count else None,
        moments=tally.moments,
        nan=tally.nan,
        infinite=tally.infinite,
        zero=tally.zero,
        first=tally.first,
        table=pack(*tally.cells.result()),
    )


_NEXT_TO_ZERO = np.array([0x0000, 0x8000])
# Below this a dense table costs more than sorting the codes: half of a model's tensors are biases and norms.
_FEW = 8192


class _CodeCounter:
    """How often each code occurs; dense from some thousands of elements on, sparse before."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._few: list[NDArray[Any]] = []
        self._waiting = 0
        self._dense: NDArray[np.int64] | None = None

    def add(self, codes: NDArray[Any], *, watch: NDArray[np.integer]) -> bool:
        """Count codes; whether some of the watched codes may be among them (surely not when False)."""
        if self._dense is None and self._waiting + codes.size <= _FEW:
            self._few.append(codes.copy())
            self._waiting += codes.size
            return True
        if self._dense is None:
            self._dense = np.zeros(self._size, np.int64)
            for waiting in self._few:
                self._dense += np.bincount(waiting, minlength=self._size)
            self._few = []
        here = np.bincount(codes, minlength=self._size)
        self._dense += here
        return bool(here[watch].any())

    def result(self) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Codes that occur, ascending, and how often."""
        if self._dense is not None:
            present = np.flatnonzero(self._dense)
            return present, self._dense[present]
        if not self._few:
            return np.empty(0, np.intp), np.empty(0, np.intp)
        return np.unique(np.concatenate(self._few), return_counts=True)


class _Tally:
    """The running state of `accumulate_values`, with buffers that are kept between chunks."""

    def __init__(self) -> None:
        self.cells = _CodeCounter(CELLS)
        self.moments = Moments()
        self.minimum, self.maximum = math.inf, -math.inf
        self.nan = self.infinite = self.zero = self.seen = 0
        self.first: int | None = None
        self._double = np.empty(0, np.float64)
        self._codes = np.empty(0, np.intp)

    def take(self, chunk: NDArray[Any]) -> None:
        if len(self._double) < chunk.size:
            self._double = np.empty(chunk.size, np.float64)
            self._codes = np.empty(chunk.size, np.intp)
        low, high = float(chunk.min()), float(chunk.max())
        # A NaN anywhere makes both of them NaN, so two look-ups tell whether the whole chunk is finite.
        if math.isfinite(low) and math.isfinite(high):
            self._take_finite(chunk, low, high)
            self._count_cells(chunk)
        else:
            self._take_odd(chunk)
        self.seen += chunk.size

    def _take_finite(self, chunk: NDArray[Any], low: float, high: float) -> None:
        self.minimum, self.maximum = min(self.minimum, low), max(self.maximum, high)
        double = self._double[: chunk.size]
        np.copyto(double, chunk)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(double.sum()) / chunk.size
            np.subtract(double, mean, out=double)
            # Not np.dot: BLAS would wake its threads for every chunk, which costs more than the product.
            np.square(double, out=double)
            spread = float(double.sum())
        self.moments = self.moments.merged(Moments(chunk.size, mean, spread))

    def _count_cells(self, chunk: NDArray[Any]) -> None:
        """Add a finite chunk to the table and count its zeros."""
        codes = self._codes[: chunk.size]
        if chunk.dtype == np.float32:
            np.right_shift(chunk.view(np.uint32), 16, out=codes, casting="unsafe")
        else:
            np.copyto(codes, cell_of(chunk.astype(np.float64, copy=False)))
        # The cells next to zero also hold the smallest subnormals: look at the elements only when they are filled.
        if self.cells.add(codes, watch=_NEXT_TO_ZERO):
            self.zero += chunk.size - int(np.count_nonzero(chunk))

    def _take_odd(self, chunk: NDArray[Any]) -> None:
        """A chunk with NaN or infinity in it: rare, so clarity before speed."""
        finite = np.isfinite(chunk)
        if self.first is None:
            self.first = self.seen + int(np.argmin(finite))
        nan = np.isnan(chunk)
        self.nan += int(nan.sum())
        self.infinite += int(chunk.size - finite.sum() - nan.sum())
        rest = chunk[finite]
        if rest.size:
            self._take_finite(rest, float(rest.min()), float(rest.max()))
            self._count_cells(rest)
        self.cells.add(cell_of(chunk[~finite]), watch=_NEXT_TO_ZERO)


def _odd_codes(values: NDArray[np.float64]) -> NDArray[np.integer]:
    return np.flatnonzero(~np.isfinite(values))


def _weighted_moments(values: NDArray[np.float64], counts: NDArray[np.integer]) -> Moments:
    total = int(counts.sum())
    if not total:
        return Moments()
    mean = float((values * counts).sum()) / total
    return Moments(total, mean, float((np.square(values - mean) * counts).sum()))


def _numbers(
    *,
    numel: int,
    extremes: tuple[float, float] | None,
    moments: Moments,
    nan: int,
    infinite: int,
    zero: int,
    first: int | None,
    table: ValueTable,
) -> Numbers:
    minimum, maximum = extremes or (math.nan, math.nan)
    mean = moments.mean if moments.count else math.nan
    std, rms = moments.std_and_rms()
    if minimum == maximum:
        # A constant tensor has no spread; the rounding of its sum would leave some.
        mean, std, rms = minimum, 0.0, abs(minimum)
    return Numbers(
        numel=numel,
        minimum=minimum,
        maximum=maximum,
        mean=mean,
        std=std,
        rms=rms,
        nan=nan,
        infinite=infinite,
        zero=zero,
        first_non_finite=first,
        table=table,
    )
