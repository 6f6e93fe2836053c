"""Sums that any cut of the data leaves the same: pages of 512 elements, gathered in blocks of 2^20.

A page is added up in float64 by numpy's pairwise summation, whose order is fixed (128 elements eight side by side, then
by halves) and whose error is small (Higham 1993, "The accuracy of floating point summation"); the compiled loop makes
the very same additions. Its spread is taken around its own mean, so that nothing cancels
where the mean is large. Pages are merged by the rule of Chan, Golub and LeVeque (1979), blocks by math.fsum, which
rounds once and in no order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.weights.report import PAGE

#: Elements of a block: what is added up before the next one begins.
BLOCK = 1 << 20
_PAGES_OF_BLOCK = BLOCK // PAGE
# Pages added up at a time by numpy: their float64 copies stay in the inner caches.
_AT_ONCE = 64


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


def add_pages(
    values: NDArray[np.floating],
    sums: NDArray[np.float64],
    spreads: NDArray[np.float64],
    counts: NDArray[np.int64],
    *,
    odd: bool = True,
) -> None:
    """Sum, spread and number of the finite elements of each page.

    values: (n,), n at most len(sums) pages; the last page may be short. sums, spreads, counts: (pages,), written.
    odd: some may be NaN or infinite; without, they are not looked for.
    """
    whole = len(values) // PAGE
    pages = values[: whole * PAGE].reshape(whole, PAGE)
    if whole:
        absent = ~np.isfinite(pages) if odd else None
        _add_some(pages, absent, (sums[:whole], spreads[:whole], counts[:whole]))
    if whole * PAGE < len(values):
        rest = len(values) - whole * PAGE
        page = np.zeros((1, PAGE), values.dtype)
        page[0, :rest] = values[whole * PAGE :]
        absent = ~np.isfinite(page)
        absent[0, rest:] = True
        _add_some(page, absent, (sums[whole:], spreads[whole:], counts[whole:]))


def _add_some(
    pages: NDArray[np.floating],
    absent: NDArray[np.bool_] | None,
    into: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]],
) -> None:
    """pages: (n, PAGE). absent: which do not count."""
    sums, spreads, counts = into
    if absent is None:
        counts[:] = PAGE
    else:
        np.subtract(PAGE, absent.sum(axis=1), out=counts)
    with np.errstate(over="ignore", invalid="ignore"):
        sums[:] = _added(pages, absent, None)
        means = sums / np.maximum(counts, 1)
        spreads[:] = _added(pages, absent, means)


def _added(
    pages: NDArray[np.floating], absent: NDArray[np.bool_] | None, means: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """The sum of each page (n, PAGE) -> (n,), or with means that of the squared differences from them."""
    sums = np.empty(len(pages))
    held = np.empty((min(_AT_ONCE, len(pages)), PAGE))
    for first in range(0, len(pages), _AT_ONCE):
        here = slice(first, first + _AT_ONCE)
        own = held[: len(pages[here])]
        np.copyto(own, pages[here])
        if means is not None:
            own -= means[here, None]
        if absent is not None:
            own[absent[here]] = 0.0
        if means is not None:
            np.square(own, out=own)
        np.add.reduce(own, axis=1, out=sums[here])
    return sums


class Gathered:
    """Pages become blocks, blocks the whole. sums, spreads: (pages,) of the first `kept` pages."""

    def __init__(self, kept: int) -> None:
        self.sums = np.zeros(0)
        self.spreads = np.zeros(0)
        self._kept = kept
        self._pieces: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        self._held = 0
        self._blocks: list[tuple[int, float, float]] = []
        self._waiting: list[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]] = []
        self._pages = 0

    def add(self, sums: NDArray[np.float64], spreads: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        """Pages in order; a block's pages never come in one call with the next block's."""
        self._waiting.append((sums, spreads, counts))
        self._pages += len(sums)
        if self._held < self._kept:
            self._pieces.append((sums, spreads))
            self._held += len(sums)
        if self._pages >= _PAGES_OF_BLOCK:
            self._close()

    def _close(self) -> None:
        sums, spreads, counts = (np.concatenate(each) for each in zip(*self._waiting, strict=True))
        self._waiting, self._pages = [], 0
        count = int(counts.sum())
        if not count:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(sums.sum())
            apart = sums / np.maximum(counts, 1) - total / count
            apart[counts == 0] = 0.0
            spread = float(spreads.sum() + (counts * apart * apart).sum())
        self._blocks.append((count, total, spread))

    def result(self) -> Moments:
        """Of all pages."""
        if self._waiting:
            self._close()
        if self._pieces:
            self.sums, self.spreads = (np.concatenate(each)[: self._kept] for each in zip(*self._pieces, strict=True))
            self._pieces = []
        count = sum(n for n, _, _ in self._blocks)
        if not count:
            return Moments()
        mean = _sum(total for _, total, _ in self._blocks) / count
        spread = _sum(own + n * (total / n - mean) ** 2 for n, total, own in self._blocks)
        return Moments(count, mean, spread)


def _sum(values: object) -> float:
    """math.fsum, infinite or NaN where it would raise."""
    numbers = list(values)  # type: ignore[call-overload]
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):
        return float(np.sum(numbers))
