"""Rows along axis 0 and columns along axis 1, from tiles of a flat tensor that know nothing of rows.

Magnitudes, not squares: the square of a small weight is below what float32 can tell from zero, and the mean magnitude
of a filter ranks it as well (Li et al. 2016, arXiv:1608.08710, who prune by it). Sums are in float32 over at most 512
numbers, then in float64, from zero for each leaf of 2^24 elements; leaves are added one after the other, so that a
tensor may be cut between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.weights import kernel
from inspector.weights.moments import LANES, LEAF, STRETCH
from inspector.weights.report import Rows

# More rows or longer ones are not kept apart: 16 MB of sums for either.
_MOST = 1 << 21
_ROWS_AT_ONCE = kernel.ROWS_AT_ONCE
_LEAST, _LARGEST = np.float32(1e-45), np.finfo(np.float32).max


def has_rows(shape: tuple[int, ...]) -> bool:
    """Whether rows are worth keeping apart: two or more dimensions, elements, and not too many of either."""
    return len(shape) >= 2 and math.prod(shape) > 0 and shape[0] <= _MOST and math.prod(shape[1:]) <= _MOST


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaf:
    """Sums over a leaf, or over the first ones of a tensor. row: the first that it touches. largest, total: (rows,) of
    those; across: (length,)."""

    row: int
    largest: NDArray[np.float64]
    total: NDArray[np.float64]
    across: NDArray[np.float64]


class RowTally:
    """The running sums of one tensor of that shape, from element `first` on, which begins a leaf."""

    def __init__(self, shape: tuple[int, ...], first: int = 0) -> None:
        self._shape = shape
        self._length = math.prod(shape[1:])
        self._numel = shape[0] * self._length
        self._first = first
        self._ended: list[Leaf] = []
        self._begin(first)

    def _begin(self, at: int) -> None:
        """The leaf from there on."""
        self._leaf_ends = at + LEAF
        self._row = at // self._length
        rows = (min(self._leaf_ends, self._numel) - 1) // self._length + 1 - self._row
        self._largest = np.zeros(rows)
        self._total = np.zeros(rows)
        self._across = np.zeros(self._length)

    def _end(self) -> None:
        leaf = Leaf(row=self._row, largest=self._largest, total=self._total, across=self._across)
        if self._first or not self._ended:
            self._ended.append(leaf)
            return
        # What begins at the beginning is added up as it comes: memory stays flat.
        if len(self._ended[0].total) < self._shape[0]:
            self._ended = [_sum_of(self._ended, self._shape[0])]
        _add(self._ended[0], leaf)

    def leaves(self) -> tuple[Leaf, ...]:
        """What was added so far."""
        self._end()
        return tuple(self._ended)

    def add(self, at: int, values: NDArray[np.floating], *, odd: bool) -> None:
        """values: (n,) from element `at` on, none beyond the leaf. odd: some are NaN or infinite."""
        if at >= self._leaf_ends:
            self._end()
            self._begin(at)
        # Rows of one element numpy adds up by halves, as it does whatever is one-dimensional to it.
        if not odd and values.dtype == np.float32 and self._length > 1 and kernel.compiled() is not None:
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
        row, inside = self._place(at)
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
        assert end <= self._numel

    def _place(self, at: int) -> tuple[int, int]:
        """The row of an element, counted from the leaf's first one, and where in it."""
        row, inside = divmod(at, self._length)
        return row - self._row, inside

    def _add_plain(self, at: int, values: NDArray[np.floating]) -> None:
        """float32 without anything odd, by the compiled loop: whole rows; their ends as always."""
        row, inside = self._place(at)
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
        self._total[here] += row_totals(sizes)
        for first in range(0, len(sizes), _ROWS_AT_ONCE):
            self._across += sizes[first : first + _ROWS_AT_ONCE].sum(axis=0)


def rows_of(leaves: Iterable[Leaf], shape: tuple[int, ...]) -> Rows:
    """Of the whole tensor, from all its leaves in order."""
    whole = _sum_of(leaves, shape[0])
    return Rows(
        count=shape[0],
        length=math.prod(shape[1:]),
        columns=shape[1],
        largest=short_sums(whole.largest),
        total=short_sums(whole.total),
        across=short_sums(whole.across.reshape(shape[1], -1).sum(axis=1)),
    )


def _sum_of(leaves: Iterable[Leaf], rows: int) -> Leaf:
    """The first leaves of a tensor of so many rows, one added after the other."""
    first, *others = leaves
    if not others and len(first.total) == rows:
        return first
    whole = Leaf(row=0, largest=np.zeros(rows), total=np.zeros(rows), across=np.zeros(len(first.across)))
    for leaf in (first, *others):
        _add(whole, leaf)
    return whole


def _add(whole: Leaf, leaf: Leaf) -> None:
    """Adds one leaf to what begins at the tensor's first row."""
    here = slice(leaf.row, leaf.row + len(leaf.total))
    np.maximum(whole.largest[here], leaf.largest, out=whole.largest[here])
    np.add(whole.total[here], leaf.total, out=whole.total[here])
    np.add(whole.across, leaf.across, out=whole.across)


def row_totals(sizes: NDArray[np.floating]) -> NDArray[np.float64]:
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


def short_sums(values: NDArray[np.float64]) -> bytes:
    """As float32, one behind the other: what is not zero stays so, what is finite too. values: any shape."""
    with np.errstate(over="ignore", under="ignore"):
        short = values.astype(np.float32)
    if not short.all():
        short[(short == 0) & (values > 0)] = _LEAST
    if not np.isfinite(short).all():
        short[np.isinf(short) & np.isfinite(values)] = _LARGEST
    return short.tobytes()
