"""From chunks of one tensor's elements to all its statistics, in one pass and flat memory.

Chunks of any size are cut anew into tiles of 2^18 elements, so that the answer does not depend on them, to the last
bit. Types of 8 and 16 bits and float32 go through one loop over float32 (`kernel.py`, compiled where numba is
installed, with the same result); wider types through float64. What a stretch of tiles gave (`parts.py`) becomes the
answer together with the others of its tensor, wherever they were read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.weights import kernel
from inspector.weights.counting import CodeCounter
from inspector.weights.moments import TILE
from inspector.weights.narrower import Narrower
from inspector.weights.parts import Numbers, Part, numbers_of
from inspector.weights.report import PAGE
from inspector.weights.row_sums import RowTally, has_rows
from inspector.weights.table import CELLS, cell_of

# Pages whose marks are kept, to find copies: 2^30 elements, 17 MB of marks.
_PAGES_KEPT = 1 << 21
# One-dimensional tensors up to here are kept whole.
_SHORT = 1 << 16
# Groups of four are looked at where so many are zero: 2:4 sparsity is half, and by chance 0.4 gives it to half of them.
_SPARSE = 0.4


def accumulate(
    chunks: Iterable[NDArray[Any]],
    dtype: str,
    shape: tuple[int, ...],
    codes: NDArray[np.float64] | None,
    *,
    narrow: bool = True,
) -> Numbers:
    """Statistics of one tensor.

    chunks: 1-D arrays of its elements in row-major order, raw bits for types that numpy lacks; all of shape's.
    codes: (256,) or (65536,), the value of each bit pattern of a type of 8 or 16 bits; None for wider types.
    narrow: whether to ask, of wider types, for a shorter one that fits and for the number of distinct values.
    Integers beyond 2^53 are rounded to float64, squares of float64 values beyond 1e154 overflow: std and rms are then
    infinite.
    """
    part = accumulate_part(chunks, dtype, shape, codes, narrow=narrow)
    return numbers_of(part, dtype, shape, codes)


def accumulate_part(
    chunks: Iterable[NDArray[Any]],
    dtype: str,
    shape: tuple[int, ...],
    codes: NDArray[np.float64] | None,
    *,
    narrow: bool = True,
    first: int = 0,
) -> Part:
    """Of the elements from `first` on, which lies at the beginning of a leaf (`moments.LEAF`); the rest as above."""
    tally = _Tally(dtype, shape, codes, narrow, first)
    # Sums of huge magnitudes overflow float32: what is infinite then is so in the report, and no news for the terminal.
    with np.errstate(over="ignore", invalid="ignore"):
        for tile in _tiles(chunks):
            tally.take(tile)
        return tally.part()


def _tiles(chunks: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """The same elements in tiles of TILE, the last one shorter."""
    held: NDArray[Any] | None = None
    filled = 0
    for chunk in chunks:
        while chunk.size:
            if held is None and chunk.size >= TILE:
                yield chunk[:TILE]
                chunk = chunk[TILE:]
                continue
            if held is None:
                # As large as what is there: of most tensors nothing follows, and a whole tile is a megabyte of memory.
                held, filled = chunk.copy(), chunk.size
                break
            if held.size < TILE:
                held = np.concatenate([held[:filled], np.empty(TILE - filled, chunk.dtype)])
            n = min(TILE - filled, chunk.size)
            held[filled : filled + n] = chunk[:n]
            filled, chunk = filled + n, chunk[n:]
            if filled == TILE:
                yield held
                held = None
    if held is not None and filled:
        yield held[:filled]


class _Tally:
    """The running state of one tensor, from element `first` on."""

    def __init__(
        self, dtype: str, shape: tuple[int, ...], codes: NDArray[np.float64] | None, narrow: bool, first: int = 0
    ) -> None:
        self._codes = codes
        with np.errstate(invalid="ignore"):  # Signalling NaNs become quiet ones.
            self._single = None if codes is None else codes.astype(np.float32)
        self._wide = np.empty(0, np.float32)
        self._begun = self._seen = first
        self._nan = self._infinite = self._zero = self._fours = 0
        self._first: int | None = None
        self._minimum: float = math.inf
        self._maximum: float = -math.inf
        self._cells = CodeCounter(CELLS if codes is None else len(codes))
        self._moments: list[tuple[int, float, float]] = []
        self._marks: list[NDArray[np.uint32]] = []
        self._blank: list[NDArray[np.bool_]] = []
        self._pages = min(first // PAGE, _PAGES_KEPT)
        self._floating = (codes is not None and dtype in ("float16", "bfloat16")) or dtype in ("float32", "float64")
        self._floating |= dtype.startswith("float8")
        self._rows = RowTally(shape, first) if self._floating and has_rows(shape) else None
        self._shape = shape
        self._kept: list[NDArray[np.float64]] = []
        self._dtype = dtype
        self._narrower = Narrower(dtype if narrow else "")

    def take(self, raw: NDArray[Any]) -> None:
        """The next tile."""
        codes = None
        if self._codes is not None:
            codes = np.ascontiguousarray(raw).view(np.uint8 if len(self._codes) == 256 else np.uint16)
        values = self._values(raw, codes)
        found = kernel.look(values, self._dtype, codes)
        if found.finite:
            self._moments.append((found.finite, found.total, found.spread))
        self._mark(values, found)
        odd = found.odd
        if odd:
            self._take_odd(values)
        if found.finite:
            self._extremes(raw, values, odd=odd, found=found)
        self._zero += found.zero
        if found.zero >= _SPARSE * values.size:
            fours = (values[: values.size // 4 * 4].reshape(-1, 4) == 0).sum(axis=1)
            self._fours += int((fours >= 2).sum())
        self._count(codes, values)
        if self._rows is not None:
            self._rows.add(self._seen, values, odd=odd)
        elif len(self._shape) == 1 and self._shape[0] <= _SHORT:
            with np.errstate(invalid="ignore"):
                self._kept.append(values.astype(np.float64))
        self._narrower.look(values)
        self._seen += values.size

    def _mark(self, values: NDArray[Any], found: kernel.Found) -> None:
        """What is kept of the tile's full pages."""
        pages = len(found.marks)
        if self._pages + pages > _PAGES_KEPT:
            return
        self._pages += pages
        self._marks.append(found.marks)
        blank = np.zeros(pages, bool)
        if found.zero >= PAGE:
            blank = (values[: pages * PAGE].reshape(pages, PAGE) == 0).all(axis=1)
        self._blank.append(blank)

    def _values(self, raw: NDArray[Any], codes: NDArray[Any] | None) -> NDArray[Any]:
        """float32 where that holds every value of the type, else float64."""
        if codes is None or self._single is None:
            return raw if raw.dtype in (np.float32, np.float64) else raw.astype(np.float64)
        # Into one buffer: a fresh one for each tile costs more than what is written into it.
        if len(self._wide) < raw.size:
            self._wide = np.empty(raw.size, np.float32)
        wide: NDArray[Any] = self._wide[: raw.size]
        if self._dtype == "bfloat16":
            kernel.widen_bfloat16(codes, wide)
        else:
            kernel.widen_by(codes, self._single, wide)
        return wide

    def _extremes(self, raw: NDArray[Any], values: NDArray[Any], *, odd: bool, found: kernel.Found) -> None:
        low, high = found.low, found.high
        if values.dtype == np.float64 and raw.dtype.kind in "iu":
            # Exactly, also beyond 2^53.
            low, high = int(raw.min()), int(raw.max())
        self._minimum, self._maximum = min(self._minimum, low), max(self._maximum, high)

    def _count(self, codes: NDArray[Any] | None, values: NDArray[Any]) -> None:
        """Into the table of values: cells of float32, or the type's own bit patterns."""
        if codes is not None:
            self._cells.add(codes)
        elif values.dtype == np.float32:
            self._cells.add_high(values.view(np.uint32))
        else:
            self._cells.add(cell_of(values))

    def _take_odd(self, values: NDArray[Any]) -> None:
        finite = np.isfinite(values)
        if self._first is None:
            self._first = self._seen + int(np.argmin(finite))
        nan = int(np.isnan(values).sum())
        self._nan += nan
        self._infinite += int(finite.size - finite.sum()) - nan

    def part(self) -> Part:
        """Of all tiles so far."""
        codes, counts = self._cells.result()
        return Part(
            first=self._begun,
            numel=self._seen - self._begun,
            moments=tuple(self._moments),
            minimum=self._minimum,
            maximum=self._maximum,
            nan=self._nan,
            infinite=self._infinite,
            zero=self._zero,
            fours=self._fours,
            first_non_finite=self._first,
            codes=codes,
            counts=counts,
            rows=self._rows.leaves() if self._rows is not None else None,
            values=np.concatenate(self._kept) if self._kept else np.empty(0),
            fits=self._narrower.fits(),
            known=self._narrower.known(),
            marks=np.concatenate(self._marks) if self._marks else np.empty((0, 2), np.uint32),
            blank=np.concatenate(self._blank) if self._blank else np.empty(0, bool),
        )
