"""The two loops that take the time, over one tile: sums of pages, and counts of codes.

Compiled (`kernel_compiled.py`, the extra [fast]) where numba is installed, else by numpy, with the very same bits: the
order of the additions is fixed by `moments.fold_pages`, everything else is exact. INSPECTOR_COMPILED=0 asks for numpy.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.weights.moments import fold_pages
from inspector.weights.report import PAGE

# Counting by numpy makes a table per call: worth it from here on, below a compiled loop's start.
_QUIET = 0x0040


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


@cache
def compiled() -> ModuleType | None:
    """The compiled loops, None where numba is missing or not wanted."""
    if os.environ.get("INSPECTOR_COMPILED", "") == "0":
        return None
    try:
        from inspector.weights import kernel_compiled
    except ImportError:
        return None
    return kernel_compiled


def look(
    values: NDArray[Any], sums: NDArray[np.float64], spreads: NDArray[np.float64], counts: NDArray[np.int64]
) -> Found:
    """values: (n,) float32 or float64. sums, spreads, counts: (pages,), written: see `fold_pages`."""
    loops = compiled()
    # A loop that has to be read from its cache first is not worth it for a bias.
    if loops is not None and values.dtype == np.float32 and values.size > PAGE:
        low, high, zero, finite = loops.look(values, sums, spreads, counts)
        return Found(float(low) + 0.0, float(high) + 0.0, int(zero), int(finite), finite < values.size)
    fold_pages(values, sums, spreads, counts)
    finite = int(counts.sum())
    odd = finite < values.size
    own = values[np.isfinite(values)] if odd else values
    low, high = (float(own.min()) + 0.0, float(own.max()) + 0.0) if finite else (0.0, 0.0)
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
