"""The loops that take the time, over one tile: what a scan of the bits tells, sums of columns, counts of codes, rows.

Compiled (`kernel_compiled.py`, the extra [fast]) where numba is installed, else by numpy, with the very same bits: the
order of the additions is fixed by `moments.py` and `row_sums.py`, everything else is exact. INSPECTOR_COMPILED=0 asks
for numpy, 1 for the compiled loops from the first byte.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.weights.moments import WIDTH, add_row, column_spreads, column_sums
from inspector.weights.report import PAGE

_QUIET = 0x0040
_WORTH_NBYTES = 256 << 20
#: Rows that are added up across in float32, before float64 takes over.
ROWS_AT_ONCE = 512

_expected = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Of one tile. low, high: extremes of the finite elements, 0.0 for zeros of either sign; both 0.0 without any.

    zero, finite: how many are. odd: some are NaN or infinite. total, spread: of the finite ones, around their mean.
    marks: (full pages, 2) uint32, what tells pages apart: the sum and the exclusive or of their bits.
    """

    low: float
    high: float
    zero: int
    finite: int
    odd: bool
    total: float
    spread: float
    marks: NDArray[np.uint32]


def expect(nbytes: int) -> None:
    """So much is about to be read: from some size on it is worth half a second to fetch the compiled loops."""
    global _expected
    _expected = max(_expected, nbytes)


def compiled() -> ModuleType | None:
    """The compiled loops, None where numba is missing or not wanted, or little was read so far."""
    wanted = os.environ.get("INSPECTOR_COMPILED", "")
    return _loops() if wanted != "0" and (wanted == "1" or _expected >= _WORTH_NBYTES) else None


@cache
def _loops() -> ModuleType | None:
    try:
        from inspector.weights import kernel_compiled
    except (ImportError, RuntimeError):
        # numba also gives up where it has no folder to keep what it compiled in.
        return None
    return kernel_compiled


def widen_bfloat16(codes: NDArray[np.uint16], out: NDArray[np.float32]) -> None:
    """The values of these bits, into `out` of their length."""
    loops, bits = compiled(), out.view(np.uint32)
    if loops is not None:
        loops.widen_bfloat16(codes, bits)
    else:
        np.copyto(bits, codes)
        np.left_shift(bits, 16, out=bits)


def widen_by(codes: NDArray[Any], table: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """table[codes], of codes of 8 or 16 bits, into `out` of their length."""
    loops = compiled()
    if loops is not None:
        loops.widen_by(codes, table.view(np.uint32), out.view(np.uint32))
    else:
        np.take(table, codes, out=out)


def look(values: NDArray[Any], dtype: str = "", codes: NDArray[Any] | None = None) -> Found:
    """values: (n,) float32 or float64, at least one. dtype, codes: the type that they come from, and its bits, of one
    with 8 or 16 bits."""
    loops = compiled() if values.dtype == np.float32 and values.size >= PAGE else None
    marks = _marks(values if codes is None else codes)
    if loops is None:
        low, high = float(values.min()), float(values.max())
        # A NaN anywhere makes both of them NaN, so two look-ups tell whether the whole tile is finite.
        odd = not (math.isfinite(low) and math.isfinite(high))
        zero = int(np.count_nonzero(values == 0))
    elif dtype == "bfloat16" and codes is not None:
        low, high, zero, odd = loops.scan_bfloat16(codes)
    else:
        low, high, zero, odd = loops.scan(values)
    if not odd:
        total, spread = _moments(values, loops)
        return Found(low + 0.0, high + 0.0, zero, values.size, False, total, spread, marks)
    absent = ~np.isfinite(values)
    own = values[~absent]
    if not own.size:
        return Found(0.0, 0.0, zero, 0, True, 0.0, 0.0, marks)
    total = float(np.add.reduce(column_sums(values, absent)))
    spread = float(np.add.reduce(column_spreads(values, total / own.size, absent)))
    return Found(float(own.min()) + 0.0, float(own.max()) + 0.0, zero, own.size, True, total, spread, marks)


def _moments(values: NDArray[Any], loops: ModuleType | None) -> tuple[float, float]:
    """Sum and spread of a tile that is finite throughout."""
    with np.errstate(over="ignore", invalid="ignore"):
        if loops is None:
            total = float(np.add.reduce(column_sums(values)))
            return total, float(np.add.reduce(column_spreads(values, total / values.size)))
        whole = values.size // WIDTH * WIDTH
        sums, rest = loops.column_sums(values[:whole]), values[whole:]
        add_row(sums, rest)
        total = float(np.add.reduce(sums))
        mean = total / values.size
        spreads = loops.column_spreads(values[:whole], mean)
        add_row(spreads, rest, mean)
        return total, float(np.add.reduce(spreads))


def _marks(elements: NDArray[Any]) -> NDArray[np.uint32]:
    """Of the full pages, as words of 32 bits: halves of float64 are put together, short elements stay side by side,
    since few of them have sums and exclusive ors that differ."""
    pages = elements.size // PAGE
    marks = np.empty((pages, 2), np.uint32)
    words = words_of(np.ascontiguousarray(elements[: pages * PAGE]))
    loops = compiled()
    if loops is not None:
        loops.mark(words, marks)
        return marks
    table = words.reshape(pages, len(words) // max(pages, 1))
    np.add.reduce(table, axis=1, dtype=np.uint32, out=marks[:, 0])
    np.bitwise_xor.reduce(table, axis=1, out=marks[:, 1])
    return marks


def words_of(elements: NDArray[Any]) -> NDArray[np.uint32]:
    """Contiguous elements, full pages of them, as the words that tell pages apart; the last axis stays the last."""
    if elements.dtype.itemsize < 8:
        return elements.view(np.uint32)
    wide = elements.view(np.uint64)
    return (wide ^ (wide >> np.uint64(32))).astype(np.uint32)


def count(codes: NDArray[Any], table: NDArray[np.int64]) -> None:
    """Adds each code (uint8 or uint16) to the table."""
    loops = compiled()
    if loops is not None:
        loops.count(codes, table)
    else:
        table += np.bincount(codes, minlength=len(table))


def count_high(bits: NDArray[np.uint32], table: NDArray[np.int64]) -> None:
    """Adds the upper 16 bits of each to the table; NaNs that would look like an infinity are made quiet."""
    loops = compiled()
    if loops is not None:
        loops.count_high(bits, table)
    else:
        table += np.bincount(bits >> np.uint32(16), minlength=len(table))
    for cell in (0x7F80, 0xFF80):
        if table[cell]:
            low = (bits & np.uint32(0xFFFF)) != 0
            wrong = int(((bits >> np.uint32(16) == cell) & low).sum())
            table[cell] -= wrong
            table[cell | _QUIET] += wrong


def add_rows(
    values: NDArray[np.float32],
    rows: int,
    largest: NDArray[np.float64],
    total: NDArray[np.float64],
    across: NDArray[np.float64],
) -> None:
    """Rows of len(across) finite elements each: largest and sum of the magnitudes, and sums across; compiled only.

    The sums are those of `row_sums.py`: stretches of a row in float32, and one row after the other.
    """
    loops = compiled()
    assert loops is not None
    flat = np.ascontiguousarray(values)
    for first in range(0, rows, ROWS_AT_ONCE):
        n = min(ROWS_AT_ONCE, rows - first)
        part = flat[first * len(across) : (first + n) * len(across)]
        sums = np.zeros(len(across), np.float32)
        here = slice(first, first + n)
        loops.add_rows(part, part.view(np.uint32), largest[here], total[here], sums)
        across += sums
