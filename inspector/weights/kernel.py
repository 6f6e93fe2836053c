"""The two loops that take the time, over one tile: sums of pages, and counts of codes.

Compiled (`kernel_compiled.py`, the extra [fast]) where numba is installed, else by numpy, with the very same bits: the
order of the additions is fixed by `moments.add_pages`, everything else is exact. INSPECTOR_COMPILED=0 asks for numpy,
1 for the compiled loops from the first byte.
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

from inspector.weights.moments import add_pages
from inspector.weights.report import PAGE

_QUIET = 0x0040
_WORTH_NBYTES = 256 << 20
#: Rows that are added up across in float32, before float64 takes over.
ROWS_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Found:
    """low, high: extremes of the finite elements, 0.0 for zeros of either sign; both 0.0 without any.

    zero, finite: how many are. odd: some are NaN or infinite.
    """

    low: float
    high: float
    zero: int
    finite: int
    odd: bool


_expected = 0


def expect(nbytes: int) -> None:
    """So much is about to be read: from some size on it is worth a quarter of a second to fetch the compiled loops."""
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


def look(
    values: NDArray[Any], sums: NDArray[np.float64], spreads: NDArray[np.float64], counts: NDArray[np.int64]
) -> Found:
    """values: (n,) float32 or float64. sums, spreads, counts: (pages,), written: see `add_pages`."""
    loops = compiled()
    # A loop that has to be read from its cache first is not worth it for a bias.
    if loops is not None and values.dtype == np.float32 and values.size > PAGE:
        low, high, zero, finite = loops.look(values, sums, spreads, counts)
        return Found(float(low) + 0.0, float(high) + 0.0, int(zero), int(finite), finite < values.size)
    low, high = float(values.min()), float(values.max())
    # A NaN anywhere makes both of them NaN, so two look-ups tell whether the whole tile is finite.
    odd = not (math.isfinite(low) and math.isfinite(high))
    add_pages(values, sums, spreads, counts, odd=odd)
    finite = int(counts.sum())
    if odd:
        own = values[np.isfinite(values)]
        low, high = (float(own.min()), float(own.max())) if finite else (0.0, 0.0)
    low, high = low + 0.0, high + 0.0
    zero = values.size - int(np.count_nonzero(values)) if low <= 0.0 <= high else 0
    return Found(low, high, zero, finite, odd)


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
        infinite = loops.INFINITE
    else:
        table += np.bincount(bits >> np.uint32(16), minlength=len(table))
        infinite = (0x7F80, 0xFF80)
    for cell in infinite:
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
