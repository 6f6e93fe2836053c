"""The loops of `kernel.py`, compiled by numba. Importing this needs it.

No fast-math: additions keep their order, so that the bits are those of numpy. Minimum and maximum are taken over the
bits as integers, which a compiler may do many at a time, as it may not with floats that could be NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

# numba compiles them in and goes by the date of this file: whoever changes one there touches this one too.
from inspector.weights.moments import LANES, STRETCH, WIDTH
from inspector.weights.report import PAGE

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
    for row in range(x.shape[0] // WIDTH):
        own = x[row * WIDTH : row * WIDTH + WIDTH]
        for i in range(WIDTH):
            sums[i] = sums[i] + np.float64(own[i])


@njit(_SPREADS, cache=True, nogil=True, error_model="numpy", boundscheck=False)
def _column_spreads(x: Any, mean: Any, sums: Any) -> None:  # pragma: no cover - compiled
    for row in range(x.shape[0] // WIDTH):
        own = x[row * WIDTH : row * WIDTH + WIDTH]
        for i in range(WIDTH):
            away = np.float64(own[i]) - mean
            sums[i] = sums[i] + away * away


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


@njit(_ADD_ROWS, cache=True, nogil=True, error_model="numpy", boundscheck=False)
def add_rows(x: Any, bits: Any, largest: Any, total: Any, across: Any) -> None:  # pragma: no cover - compiled
    """Magnitudes of whole rows: each row's largest and sum, and the sums across."""
    length = across.shape[0]
    held = np.empty(1, np.uint32)
    lanes = np.empty(LANES, np.float32)
    sums = np.empty(LANES, np.float64)
    for row in range(largest.shape[0]):
        start = row * length
        worst = np.uint32(0)
        here = bits[start : start + length]
        for i in range(length):
            worst = max(worst, here[i] & _SIZE)
        held[0] = worst
        largest[row] = max(largest[row], np.float64(held.view(np.float32)[0]))
        own = x[start : start + length]
        for i in range(length):
            across[i] = across[i] + abs(own[i])
        sums[:] = 0.0
        for first in range(0, length, STRETCH):
            part = own[first : min(first + STRETCH, length)]
            lanes[:] = 0.0
            steps = part.shape[0] // LANES
            for step in range(steps):
                some = part[step * LANES : step * LANES + LANES]
                for i in range(LANES):
                    lanes[i] = lanes[i] + abs(some[i])
            rest = part[steps * LANES :]
            for i in range(rest.shape[0]):
                lanes[i] = lanes[i] + abs(rest[i])
            for i in range(LANES):
                sums[i] = sums[i] + np.float64(lanes[i])
        whole = np.float64(0.0)
        for i in range(LANES):
            whole = whole + sums[i]
        total[row] += whole
