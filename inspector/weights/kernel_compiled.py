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
_SIZE_SHORT = np.uint16(0x7FFF)


def _read(kind: Any) -> Any:
    """An array that is only read: one compiled loop serves bytes of a file and arrays of our own."""
    return types.Array(kind, 1, "C", readonly=True)


_F32, _U32, _F64, _I64 = types.float32, types.uint32, types.float64[::1], types.int64[::1]
_SCAN = [types.Tuple((types.int32, types.int32, types.int64, types.uint32))(_read(_U32))]  # type: ignore[no-untyped-call]
_SCAN_SHORT = [types.Tuple((types.int16, types.int16, types.int64, types.uint16))(_read(types.uint16))]  # type: ignore[no-untyped-call]
_MARK = types.void(_read(_U32), types.uint32[:, ::1])
_WIDEN = types.void(_read(types.uint16), types.uint32[::1])
_WIDEN_BY = [types.void(_read(kind), _read(_U32), types.uint32[::1]) for kind in (types.uint16, types.uint8)]
_COLUMNS = types.void(_read(_F32), _F64)
_SPREADS = types.void(_read(_F32), types.float64, _F64)
_COUNT = [types.void(_read(types.uint16), _I64), types.void(_read(types.uint8), _I64)]
_COUNT_HIGH = types.void(_read(_U32), _I64)
_ADD_ROWS = types.void(_read(_F32), _read(_U32), _F64, _F64, types.float32[::1])


@njit(_SCAN, cache=True, nogil=True, error_model="numpy", boundscheck=False)
def _scan(keys: Any) -> Any:  # pragma: no cover - compiled
    lowest, highest = np.int32(2147483647), np.int32(-2147483648)
    zero: Any = 0
    worst = np.uint32(0)
    for begin in range(0, keys.shape[0], PAGE):
        bits = keys[begin : min(begin + PAGE, keys.shape[0])]
        none = np.uint32(0)
        for i in range(bits.shape[0]):
            size = bits[i] & _SIZE
            worst = max(size, worst)
            none = np.uint32(none + np.uint32(size == np.uint32(0)))
            signed = np.int32(bits[i])
            key = signed ^ np.int32(np.uint32(signed >> np.int32(31)) >> np.uint32(1))
            lowest = min(lowest, key)
            highest = max(highest, key)
        zero += none
    return lowest, highest, zero, worst


@njit(_SCAN_SHORT, cache=True, nogil=True, error_model="numpy", boundscheck=False)
def _scan_short(keys: Any) -> Any:  # pragma: no cover - compiled
    # The same for 16 bits: whatever is not said to be of 16 bits would be made wider.
    lowest, highest = np.int16(32767), np.int16(-32768)
    zero: Any = 0
    worst = np.uint16(0)
    for begin in range(0, keys.shape[0], PAGE):
        bits = keys[begin : min(begin + PAGE, keys.shape[0])]
        none = np.uint16(0)
        for i in range(bits.shape[0]):
            size = np.uint16(bits[i] & _SIZE_SHORT)
            worst = max(size, worst)
            none = np.uint16(none + np.uint16(size == np.uint16(0)))
            signed = np.int16(bits[i])
            key = np.int16(signed ^ np.int16(np.uint16(signed >> np.int16(15)) >> np.uint16(1)))
            lowest = min(lowest, key)
            highest = max(highest, key)
        zero += none
    return lowest, highest, zero, worst


def scan(values: Any) -> tuple[float, float, int, bool]:
    """Lowest, highest, zeros, whether some are NaN or infinite, of a float32 tile."""
    low, high, zero, worst = _scan(np.ascontiguousarray(values).view(np.uint32))
    return _value(low), _value(high), int(zero), bool(worst >= _ODD)


def scan_bfloat16(codes: Any) -> tuple[float, float, int, bool]:
    """The same of the values of bfloat16 bits, from half as many bytes."""
    low, high, zero, worst = _scan_short(codes)
    return _value(_wide_key(low)), _value(_wide_key(high)), int(zero), bool(int(worst) << 16 >= _ODD)


@njit(_MARK, cache=True, nogil=True, error_model="numpy", boundscheck=False)
def mark(words: Any, marks: Any) -> None:  # pragma: no cover - compiled
    """The sum and the exclusive or of as many words each as fill the pages evenly."""
    if not marks.shape[0]:
        return
    each = words.shape[0] // marks.shape[0]
    for page in range(marks.shape[0]):
        own = words[page * each : page * each + each]
        total = mixed = np.uint32(0)
        for i in range(each):
            total = np.uint32(total + own[i])
            mixed = mixed ^ own[i]
        marks[page, 0] = total
        marks[page, 1] = mixed


def _wide_key(key: int) -> int:
    """The key of a float32 that has these upper 16 bits; the lower ones are zeros, which a negative key has turned."""
    return (key << 16) if key >= 0 else (key << 16) | 0xFFFF


@njit(_WIDEN, cache=True, nogil=True, error_model="numpy", boundscheck=False)
def widen_bfloat16(codes: Any, bits: Any) -> None:  # pragma: no cover - compiled
    """The bits of each as float32."""
    for i in range(codes.shape[0]):
        bits[i] = np.uint32(codes[i]) << np.uint32(16)


@njit(_WIDEN_BY, cache=True, nogil=True, error_model="numpy", boundscheck=False)
def widen_by(codes: Any, table: Any, bits: Any) -> None:  # pragma: no cover - compiled
    """bits = table[codes]: of types of 8 and 16 bits; the few codes that occur keep their part of the table near."""
    for i in range(codes.shape[0]):
        bits[i] = table[codes[i]]


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
