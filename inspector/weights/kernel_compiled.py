"""The loops of `kernel.py`, compiled by numba. Importing this needs it.

No fast-math: additions keep their order, so that the bits are those of numpy. Minimum and maximum are taken over the
bits as integers, which a compiler may do many at a time, as it may not with floats that could be NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

PAGE = 512
HALF = PAGE // 2
INFINITE = (0x7F80, 0xFF80)

_ODD = np.uint32(0x7F800000)
_SIZE = np.uint32(0x7FFFFFFF)


@njit(cache=True, nogil=True, error_model="numpy", boundscheck=False)
def _fold(held: Any) -> Any:  # pragma: no cover - compiled
    half = HALF // 2
    while half >= 1:
        for i in range(half):
            held[i] = held[i] + held[i + half]
        half //= 2
    return held[0]


@njit(cache=True, nogil=True, error_model="numpy", boundscheck=False)
def _pages(values: Any, keys: Any, sums: Any, spreads: Any, counts: Any) -> Any:  # pragma: no cover - compiled
    held = np.empty(HALF, np.float64)
    own = np.empty(PAGE, np.float32)
    n = values.shape[0]
    lowest, highest = np.int32(2147483647), np.int32(-2147483648)
    zero = 0
    finite_in_all = 0
    for page in range(sums.shape[0]):
        start = page * PAGE
        end = min(start + PAGE, n)
        bits = keys[start:end]
        worst = np.uint32(0)
        low, high = np.int32(2147483647), np.int32(-2147483648)
        none = 0
        for i in range(bits.shape[0]):
            size = bits[i] & _SIZE
            worst = max(worst, size)
            none += size == 0
            signed = np.int32(bits[i])
            key = signed ^ np.int32(np.uint32(signed >> np.int32(31)) >> np.uint32(1))
            low = min(low, key)
            high = max(high, key)
        zero += none
        if worst < _ODD and end - start == PAGE:
            lowest, highest = min(lowest, low), max(highest, high)
            x = values[start:end]
            for i in range(HALF):
                held[i] = np.float64(x[i]) + np.float64(x[i + HALF])
            total = _fold(held)
            mean = total / np.float64(PAGE)
            for i in range(HALF):
                a = np.float64(x[i]) - mean
                b = np.float64(x[i + HALF]) - mean
                held[i] = a * a + b * b
            sums[page] = total
            spreads[page] = _fold(held)
            counts[page] = PAGE
            finite_in_all += PAGE
            continue
        # A short page, or one with something in it that is no number.
        finite = 0
        for i in range(PAGE):
            own[i] = np.float32(0.0)
            if start + i < n and (keys[start + i] & _SIZE) < _ODD:
                own[i] = values[start + i]
                finite += 1
                signed = np.int32(keys[start + i])
                key = signed ^ np.int32(np.uint32(signed >> np.int32(31)) >> np.uint32(1))
                lowest, highest = min(lowest, key), max(highest, key)
        for i in range(HALF):
            held[i] = np.float64(own[i]) + np.float64(own[i + HALF])
        total = _fold(held)
        mean = total / np.float64(max(finite, 1))
        for i in range(HALF):
            a = np.float64(own[i]) - mean
            b = np.float64(own[i + HALF]) - mean
            if not (start + i < n and (keys[start + i] & _SIZE) < _ODD):
                a = np.float64(0.0)
            if not (start + i + HALF < n and (keys[start + i + HALF] & _SIZE) < _ODD):
                b = np.float64(0.0)
            held[i] = a * a + b * b
        sums[page] = total
        spreads[page] = _fold(held)
        counts[page] = finite
        finite_in_all += finite
    return lowest, highest, zero, finite_in_all


def look(values: Any, sums: Any, spreads: Any, counts: Any) -> tuple[float, float, int, int]:
    """Lowest, highest, zeros and finite elements of a float32 tile; its pages are written."""
    values = np.ascontiguousarray(values)
    low, high, zero, finite = _pages(values, values.view(np.uint32), sums, spreads, counts)
    if not finite:
        return 0.0, 0.0, zero, finite
    return _value(low), _value(high), zero, finite


def _value(key: int) -> float:
    bits = key if key >= 0 else key ^ 0x7FFFFFFF
    return float(np.array([bits], np.int32).view(np.float32)[0])


@njit(cache=True, nogil=True, error_model="numpy", boundscheck=False)
def count(codes: Any, table: Any) -> None:  # pragma: no cover - compiled
    """table[code] += 1 for each."""
    for i in range(codes.shape[0]):
        table[codes[i]] += 1


@njit(cache=True, nogil=True, error_model="numpy", boundscheck=False)
def count_high(bits: Any, table: Any) -> None:  # pragma: no cover - compiled
    """table[bits >> 16] += 1 for each."""
    for i in range(bits.shape[0]):
        table[bits[i] >> np.uint32(16)] += 1
