"""The loops of `kernel.py`, compiled by numba. Importing this needs it.

No fast-math: additions keep their order, so that the bits are those of numpy. Minimum and maximum are taken over the
bits as integers, which a compiler may do many at a time, as it may not with floats that could be NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

PAGE = WIDTH = 512
STRETCH = 128

_ODD = np.uint32(0x7F800000)
_SIZE = np.uint32(0x7FFFFFFF)


def _read(kind: Any) -> Any:
    """An array that is only read: one compiled loop serves bytes of a file and arrays of our own."""
    return types.Array(kind, 1, "C", readonly=True)


_F32, _U32, _F64, _I64 = types.float32, types.uint32, types.float64[::1], types.int64[::1]
_SCAN = types.Tuple((types.int32, types.int32, types.int64, types.uint32))(_read(_U32), types.uint32[:, ::1])  # type: ignore[no-untyped-call]
_COLUMNS = types.void(_read(_F32), _F64)
_SPREADS = types.void(_read(_F32), types.float64, _F64)
_COUNT = [types.void(_read(types.uint16), _I64), types.void(_read(types.uint8), _I64)]
_COUNT_HIGH = types.void(_read(_U32), _I64)
_ADD_ROWS = types.void(_read(_F32), _read(_U32), _F64, _F64, types.float32[::1])


@njit(cache=True, nogil=True, error_model="numpy", boundscheck=False)
def _put(sums: Any, first: Any, second: Any) -> None:  # pragma: no cover - compiled
    for i in range(8):
        sums[i] = first[i]
        sums[8 + i] = second[i]


@njit(cache=True, nogil=True, error_model="numpy", boundscheck=False)
def _apart(value: Any, mean: Any) -> Any:  # pragma: no cover - compiled
    away = np.float64(value) - mean
    return away * away


@njit(_SCAN, cache=True, nogil=True, error_model="numpy", boundscheck=False)
def _scan(keys: Any, marks: Any) -> Any:  # pragma: no cover - compiled
    n = keys.shape[0]
    lowest, highest = np.int32(2147483647), np.int32(-2147483648)
    zero: Any = 0
    worst = np.uint32(0)
    for page in range((n + PAGE - 1) // PAGE):
        bits = keys[page * PAGE : min((page + 1) * PAGE, n)]
        total = mixed = none = np.uint32(0)
        for i in range(bits.shape[0]):
            total = np.uint32(total + bits[i])
            mixed = mixed ^ bits[i]
            size = bits[i] & _SIZE
            worst = max(size, worst)
            none = np.uint32(none + np.uint32(size == np.uint32(0)))
            signed = np.int32(bits[i])
            key = signed ^ np.int32(np.uint32(signed >> np.int32(31)) >> np.uint32(1))
            lowest = min(lowest, key)
            highest = max(highest, key)
        zero += none
        if page < marks.shape[0]:
            marks[page, 0] = total
            marks[page, 1] = mixed
    return lowest, highest, zero, worst


def scan(values: Any) -> tuple[float, float, int, bool, Any]:
    """Lowest, highest, zeros, whether some are NaN or infinite, and the marks of the full pages of a float32 tile."""
    values = np.ascontiguousarray(values)
    marks = np.empty((len(values) // PAGE, 2), np.uint32)
    low, high, zero, worst = _scan(values.view(np.uint32), marks)
    return _value(low), _value(high), int(zero), bool(worst >= _ODD), marks


def _value(key: int) -> float:
    bits = key if key >= 0 else key ^ 0x7FFFFFFF
    return float(np.array([bits], np.int32).view(np.float32)[0])


@njit(_COLUMNS, cache=True, nogil=True, error_model="numpy", boundscheck=False)
def _column_sums(x: Any, sums: Any) -> None:  # pragma: no cover - compiled
    """Sixteen columns at a time, from top to bottom: their sums stay in registers."""
    rows = x.shape[0] // WIDTH
    for first in range(0, WIDTH, 16):
        a = b = c = d = e = f = g = h = np.float64(0.0)
        i = j = k = l = m = n = o = p = np.float64(0.0)  # noqa: E741
        for row in range(rows):
            own = x[row * WIDTH + first : row * WIDTH + first + 16]
            a, b, c, d = a + own[0], b + own[1], c + own[2], d + own[3]
            e, f, g, h = e + own[4], f + own[5], g + own[6], h + own[7]
            i, j, k, l = i + own[8], j + own[9], k + own[10], l + own[11]  # noqa: E741
            m, n, o, p = m + own[12], n + own[13], o + own[14], p + own[15]
        _put(sums[first : first + 16], (a, b, c, d, e, f, g, h), (i, j, k, l, m, n, o, p))


@njit(_SPREADS, cache=True, nogil=True, error_model="numpy", boundscheck=False)
def _column_spreads(x: Any, mean: Any, sums: Any) -> None:  # pragma: no cover - compiled
    rows = x.shape[0] // WIDTH
    for first in range(0, WIDTH, 16):
        a = b = c = d = e = f = g = h = np.float64(0.0)
        i = j = k = l = m = n = o = p = np.float64(0.0)  # noqa: E741
        for row in range(rows):
            own = x[row * WIDTH + first : row * WIDTH + first + 16]
            a, b = a + _apart(own[0], mean), b + _apart(own[1], mean)
            c, d = c + _apart(own[2], mean), d + _apart(own[3], mean)
            e, f = e + _apart(own[4], mean), f + _apart(own[5], mean)
            g, h = g + _apart(own[6], mean), h + _apart(own[7], mean)
            i, j = i + _apart(own[8], mean), j + _apart(own[9], mean)
            k, l = k + _apart(own[10], mean), l + _apart(own[11], mean)  # noqa: E741
            m, n = m + _apart(own[12], mean), n + _apart(own[13], mean)
            o, p = o + _apart(own[14], mean), p + _apart(own[15], mean)
        _put(sums[first : first + 16], (a, b, c, d, e, f, g, h), (i, j, k, l, m, n, o, p))


def column_sums(values: Any) -> Any:
    """(rows x WIDTH,) float32 -> (WIDTH,): see `moments.column_sums`."""
    sums = np.zeros(WIDTH)
    _column_sums(np.ascontiguousarray(values), sums)
    return sums


def column_spreads(values: Any, mean: float) -> Any:
    """(rows x WIDTH,) float32 -> (WIDTH,): see `moments.column_spreads`."""
    sums = np.zeros(WIDTH)
    _column_spreads(np.ascontiguousarray(values), mean, sums)
    return sums


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
