"""Rows along axis 0 and columns along axis 1, from tiles of a flat tensor that know nothing of rows.

Magnitudes, not squares: the square of a small weight is below what float32 can tell from zero, and the mean magnitude
of a filter ranks it as well (Li et al. 2016, arXiv:1608.08710, who prune by it). Sums are in float32 over at most 512
numbers, then in float64.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from inspector.weights import kernel
from inspector.weights.moments import LANES, STRETCH
from inspector.weights.report import Rows

# More rows or longer ones are not kept apart: 16 MB of sums for either.
_MOST = 1 << 21
_ROWS_AT_ONCE = kernel.ROWS_AT_ONCE
_LEAST, _LARGEST = np.float32(1e-45), np.finfo(np.float32).max


def has_rows(shape: tuple[int, ...]) -> bool:
    """Whether rows are worth keeping apart: two or more dimensions, elements, and not too many of either."""
    return len(shape) >= 2 and math.prod(shape) > 0 and shape[0] <= _MOST and math.prod(shape[1:]) <= _MOST


class RowTally:
    """The running sums of one tensor of that shape."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._length = math.prod(shape[1:])
        self._largest = np.zeros(shape[0])
        self._total = np.zeros(shape[0])
        self._across = np.zeros(self._length)

    def add(self, at: int, values: NDArray[np.floating], *, odd: bool) -> None:
        """values: (n,) from element `at` on. odd: some are NaN or infinite."""
        if not odd and values.dtype == np.float32 and kernel.compiled() is not None:
            self._add_plain(at, values)
            return
        sizes = np.abs(values)
        if odd:
            finite = np.isfinite(sizes)
            peaks = np.where(finite, sizes, np.inf).astype(sizes.dtype)
            sizes = np.where(finite, sizes, 0).astype(sizes.dtype)
        else:
            peaks = sizes
        length, end = self._length, at + len(values)
        row, inside = divmod(at, length)
        if inside or len(values) < length:
            n = min(length - inside, len(values))
            self._part(row, inside, sizes[:n], peaks[:n])
            sizes, peaks, row = sizes[n:], peaks[n:], row + 1
        whole = len(sizes) // length
        if whole:
            self._rows(row, sizes[: whole * length].reshape(whole, length), peaks[: whole * length])
            sizes, peaks, row = sizes[whole * length :], peaks[whole * length :], row + whole
        if len(sizes):
            self._part(row, 0, sizes, peaks)
        assert end <= self._shape[0] * length

    def _add_plain(self, at: int, values: NDArray[np.floating]) -> None:
        """float32 without anything odd, by the compiled loop: whole rows; their ends as always."""
        row, inside = divmod(at, self._length)
        head = min((self._length - inside) % self._length, len(values))
        if head:
            sizes = np.abs(values[:head])
            self._part(row, inside, sizes, sizes)
            row += 1
        whole = (len(values) - head) // self._length
        if whole:
            kernel.add_rows(values[head:], whole, self._largest[row:], self._total[row:], self._across)
        done = head + whole * self._length
        if done < len(values):
            sizes = np.abs(values[done:])
            self._part(row + whole, 0, sizes, sizes)

    def _part(self, row: int, inside: int, sizes: NDArray[np.floating], peaks: NDArray[np.floating]) -> None:
        self._largest[row] = max(self._largest[row], float(peaks.max()))
        self._total[row] += float(sizes.sum())
        self._across[inside : inside + len(sizes)] += sizes

    def _rows(self, row: int, sizes: NDArray[np.floating], peaks: NDArray[np.floating]) -> None:
        """Whole rows: sizes (rows, length)."""
        here = slice(row, row + len(sizes))
        np.maximum(self._largest[here], peaks.reshape(sizes.shape).max(axis=1), out=self._largest[here])
        self._total[here] += _row_totals(sizes)
        for first in range(0, len(sizes), _ROWS_AT_ONCE):
            self._across += sizes[first : first + _ROWS_AT_ONCE].sum(axis=0)

    def result(self) -> Rows:
        """Of the whole tensor."""
        columns = self._shape[1]
        return Rows(
            count=self._shape[0],
            length=self._length,
            columns=columns,
            largest=_short(self._largest),
            total=_short(self._total),
            across=_short(self._across.reshape(columns, -1).sum(axis=1)),
        )


def _row_totals(sizes: NDArray[np.floating]) -> NDArray[np.float64]:
    """(rows, length) -> (rows,): every 64th element in the type itself, over a stretch; the rest in float64."""
    rows, length = sizes.shape
    sums = np.zeros((rows, LANES))
    for first in range(0, length, STRETCH):
        part = sizes[:, first : first + STRETCH]
        steps = part.shape[1] // LANES
        lanes = np.add.reduce(part[:, : steps * LANES].reshape(rows, steps, LANES), axis=1)
        rest = part[:, steps * LANES :]
        lanes[:, : rest.shape[1]] += rest
        sums += lanes
    # One after the other, as the compiled loop adds them.
    totals: NDArray[np.float64] = np.add.accumulate(sums, axis=1)[:, -1]
    return totals


def _short(values: NDArray[np.float64]) -> bytes:
    """As float32: what is not zero stays so, what is finite too."""
    with np.errstate(over="ignore", under="ignore"):
        short = values.astype(np.float32)
    if not short.all():
        short[(short == 0) & (values > 0)] = _LEAST
    if not np.isfinite(short).all():
        short[np.isinf(short) & np.isfinite(values)] = _LARGEST
    return short.tobytes()
