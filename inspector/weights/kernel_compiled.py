"""The loops of `kernel.py`, compiled by numba. Importing this needs it.

No fast-math: additions keep their order, so that the bits are those of numpy. Minimum and maximum are taken over the
bits as integers, which a compiler may do many at a time, as it may not with floats that could be NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

PAGE = 512
STRETCH = 128
INFINITE = (0x7F80, 0xFF80)

_ODD = np.uint32(0x7F800000)
_SIZE = np.uint32(0x7FFFFFFF)


def _read(kind: Any) -> Any:
    """An array that is only read: one compiled loop serves bytes of a file and arrays of our own."""
    return types.Array(kind, 1, "C", readonly=True)


_F32, _U32, _F64, _I64 = types.float32, types.uint32, types.float64[::1], types.int64[::1]
_PAGES = types.Tuple((types.int32, types.int32, types.int64, types.int64))(_read(_F32), _read(_U32), _F64, _F64, _I64)  # type: ignore[no-untyped-call]
_COUNT = [types.void(_read(types.uint16), _I64), types.void(_read(types.uint8), _I64)]
_COUNT_HIGH = types.void(_read(_U32), _I64)
_ADD_ROWS = types.void(_read(_F32), _read(_U32), _F64, _F64, types.float32[::1])


@njit(cache=True, nogil=True, error_model="numpy", boundscheck=False)
def _sum_256(x: Any) -> Any:  # pragma: no cover - compiled
    """Of 256 elements as numpy adds them: two stretches of 128, each eight side by side."""
    a = b = c = d = e = f = g = h = np.float64(0.0)
    i = j = k = l = m = n = o = p = np.float64(0.0)  # noqa: E741
    for eight in range(STRETCH // 8):
        own = x[eight * 8 : eight * 8 + 8]
        two = x[STRETCH + eight * 8 : STRETCH + eight * 8 + 8]
        a, b, c, d = a + own[0], b + own[1], c + own[2], d + own[3]
        e, f, g, h = e + own[4], f + own[5], g + own[6], h + own[7]
        i, j, k, l = i + two[0], j + two[1], k + two[2], l + two[3]  # noqa: E741
        m, n, o, p = m + two[4], n + two[5], o + two[6], p + two[7]
    first = ((a + b) + (c + d)) + ((e + f) + (g + h))
    return first + (((i + j) + (k + l)) + ((m + n) + (o + p)))


@njit(_PAGES, cache=True, nogil=True, error_model="numpy", boundscheck=False)
def _pages(values: Any, keys: Any, sums: Any, spreads: Any, counts: Any) -> Any:  # pragma: no cover - compiled
    wide = np.empty(PAGE, np.float64)
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
            for i in range(PAGE):
                wide[i] = np.float64(x[i])
            total = _sum_256(wide[:256]) + _sum_256(wide[256:])
            mean = total / np.float64(PAGE)
            for i in range(PAGE):
                away = wide[i] - mean
                wide[i] = away * away
            sums[page] = total
            spreads[page] = _sum_256(wide[:256]) + _sum_256(wide[256:])
            counts[page] = PAGE
            finite_in_all += PAGE
            continue
        # A short page, or one with something in it that is no number.
        finite = 0
        for i in range(PAGE):
            wide[i] = np.float64(0.0)
            if start + i < n and (keys[start + i] & _SIZE) < _ODD:
                wide[i] = np.float64(values[start + i])
                finite += 1
                signed = np.int32(keys[start + i])
                key = signed ^ np.int32(np.uint32(signed >> np.int32(31)) >> np.uint32(1))
                lowest, highest = min(lowest, key), max(highest, key)
        total = _sum_256(wide[:256]) + _sum_256(wide[256:])
        mean = total / np.float64(max(finite, 1))
        for i in range(PAGE):
            away = wide[i] - mean
            wide[i] = np.float64(0.0)
            if start + i < n and (keys[start + i] & _SIZE) < _ODD:
                wide[i] = away * away
        sums[page] = total
        spreads[page] = _sum_256(wide[:256]) + _sum_256(wide[256:])
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


@njit(_COUNT, cache=True, nogil=True, error_model="numpy", boundscheck=False)
def count(codes: Any, table: Any) -> None:  # pragma: no cover - compiled
    """table[code] += 1 for each."""
    for i in range(codes.shape[0]):
        table[codes[i]] += 1


@njit(_COUNT_HIGH, cache=True, nogil=True, error_model="numpy", boundscheck=False)
def count_high(bits: Any, table: Any) -> None:  # pragma: no cover - compiled
    """table[bits >> 16] += 1 for each."""
    for i in range(bits.shape[0]):
        table[bits[i] >> np.uint32(16)] += 1


@njit(cache=True, nogil=True, error_model="numpy", boundscheck=False)
def _leaf(x: Any) -> Any:  # pragma: no cover - compiled
    """The sum of at most 128 magnitudes in numpy's own order, eight side by side."""
    n = x.shape[0]
    if n < 8:
        total = np.float32(0.0)
        for i in range(n):
            total = total + abs(x[i])
        return total
    a = b = c = d = e = f = g = h = np.float32(0.0)
    for eight in range(n // 8):
        own = x[eight * 8 : eight * 8 + 8]
        a, b, c, d = a + abs(own[0]), b + abs(own[1]), c + abs(own[2]), d + abs(own[3])
        e, f, g, h = e + abs(own[4]), f + abs(own[5]), g + abs(own[6]), h + abs(own[7])
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    rest = x[n - n % 8 :]
    for i in range(rest.shape[0]):
        total = total + abs(rest[i])
    return total


@njit(cache=True, nogil=True, error_model="numpy", boundscheck=False)
def _leaves(x: Any) -> Any:  # pragma: no cover - compiled
    """Two whole stretches at a time: their additions do not wait for each other."""
    a = b = c = d = e = f = g = h = np.float32(0.0)
    i = j = k = l = m = n = o = p = np.float32(0.0)  # noqa: E741
    for eight in range(STRETCH // 8):
        own = x[eight * 8 : eight * 8 + 8]
        two = x[STRETCH + eight * 8 : STRETCH + eight * 8 + 8]
        a, b, c, d = a + abs(own[0]), b + abs(own[1]), c + abs(own[2]), d + abs(own[3])
        e, f, g, h = e + abs(own[4]), f + abs(own[5]), g + abs(own[6]), h + abs(own[7])
        i, j, k, l = i + abs(two[0]), j + abs(two[1]), k + abs(two[2]), l + abs(two[3])  # noqa: E741
        m, n, o, p = m + abs(two[4]), n + abs(two[5]), o + abs(two[6]), p + abs(two[7])
    first = ((a + b) + (c + d)) + ((e + f) + (g + h))
    return first, ((i + j) + (k + l)) + ((m + n) + (o + p))


@njit(_ADD_ROWS, cache=True, nogil=True, error_model="numpy", boundscheck=False)
def add_rows(x: Any, bits: Any, largest: Any, total: Any, across: Any) -> None:  # pragma: no cover - compiled
    """Magnitudes of whole rows: each row's largest and sum, and the sums across."""
    length = across.shape[0]
    held = np.empty(1, np.uint32)
    for row in range(largest.shape[0]):
        start = row * length
        worst = np.uint32(0)
        here = bits[start : start + length]
        for i in range(length):
            worst = max(worst, here[i] & _SIZE)
        held[0] = worst
        largest[row] = max(largest[row], np.float64(held.view(np.float32)[0]))
        own = x[start : start + length]
        own_total = np.float64(0.0)
        pairs = length // (2 * STRETCH)
        for pair in range(pairs):
            one, two = _leaves(own[pair * 2 * STRETCH : (pair + 1) * 2 * STRETCH])
            own_total = own_total + np.float64(one) + np.float64(two)
        for part in range(pairs * 2 * STRETCH, length, STRETCH):
            own_total = own_total + np.float64(_leaf(own[part : part + STRETCH]))
        total[row] += own_total
        for i in range(length):
            across[i] = across[i] + abs(own[i])
