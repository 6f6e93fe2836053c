"""The loop of `kernel.py` over a pair of tiles, compiled by numba. Importing this needs it.

No fast-math: additions keep their order, so that the bits are those of numpy. A few rows are widened, added to the
columns and counted while they are in the processor's nearest memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

WIDTH = 512
#: Rows that are added up at once, one after the other in each column.
ROWS = 4
STEP = ROWS * WIDTH

_SIZE = np.uint32(0x7FFFFFFF)
_ODD = np.uint32(0x7F800000)
_HALF = np.uint32(0x7C00)
_ONE, _NONE, _LAST = np.uint32(1), np.uint32(0), np.uint32(31)


def _read(kind: Any) -> Any:
    """An array that is only read: one compiled loop serves bytes of a file and arrays of our own."""
    return types.Array(kind, 1, "C", readonly=True)


_OUT = (types.float64[:, ::1], types.int64[::1])
_WIDE = types.void(_read(types.uint32), _read(types.uint32), *_OUT)
_NARROW = types.void(_read(types.uint16), _read(types.uint16), types.boolean, *_OUT)


@njit(inline="always")
def _add(x: Any, y: Any, sums: Any) -> None:  # pragma: no cover - compiled
    """x, y: STEP float32 each."""
    sum_a, sum_b, square_a, square_b = sums[0], sums[1], sums[2], sums[3]
    square_d, dot, worst = sums[4], sums[5], sums[6]
    for i in range(WIDTH):
        s, t, u, v, w, z, m = sum_a[i], sum_b[i], square_a[i], square_b[i], square_d[i], dot[i], worst[i]
        for k in range(ROWS):
            p, q = np.float64(x[i + k * WIDTH]), np.float64(y[i + k * WIDTH])
            d = q - p
            s += p
            t += q
            u += p * p
            v += q * q
            w += d * d
            z += p * q
            d = abs(d)
            m = d if d > m else m
        sum_a[i], sum_b[i], square_a[i], square_b[i], square_d[i], dot[i], worst[i] = s, t, u, v, w, z, m


@njit(inline="always")
def _add_rest(x: Any, y: Any, sums: Any) -> None:  # pragma: no cover - compiled
    """The same of fewer than STEP."""
    for i in range(x.shape[0]):
        p, q = np.float64(x[i]), np.float64(y[i])
        d = q - p
        c = i % WIDTH
        sums[0, c] += p
        sums[1, c] += q
        sums[2, c] += p * p
        sums[3, c] += q * q
        sums[4, c] += d * d
        sums[5, c] += p * q
        d = abs(d)
        sums[6, c] = d if d > sums[6, c] else sums[6, c]


@njit(inline="always")
def _count(x: Any, y: Any, counts: Any) -> None:  # pragma: no cover - compiled
    """x, y: bits of float32. Without branches, so that a processor takes many at a time."""
    equal = zeroed = flips = most = odd = _NONE
    least = np.uint32(0xFFFFFFFF)
    for i in range(x.shape[0]):
        size_a, size_b = x[i] & _SIZE, y[i] & _SIZE
        signs = (x[i] ^ y[i]) >> _LAST
        odd = max(odd, max(size_a, size_b))
        equal += np.uint32(x[i] == y[i])
        # Two zeros of other signs.
        equal += np.uint32((size_a | size_b) < signs)
        gone = _NONE if size_b else size_a
        zeroed += min(gone, _ONE)
        most = max(most, gone)
        # 0 - 1 is the largest there is.
        kept = size_a if size_b else _NONE
        least = min(least, kept - _ONE)
        flips += signs & min(kept, _ONE)
    counts[0] += equal
    counts[1] += zeroed
    counts[2] += flips
    counts[3] = max(counts[3], np.int64(most))
    counts[4] = min(counts[4], np.int64(least))
    counts[5] = max(counts[5], np.int64(odd))


@njit(_WIDE, cache=True, nogil=True, error_model="numpy", boundscheck=False)
def _pair(x: Any, y: Any, sums: Any, counts: Any) -> None:  # pragma: no cover - compiled
    whole = x.shape[0] // STEP * STEP
    a, b = x.view(np.float32), y.view(np.float32)
    for at in range(0, whole, STEP):
        _add(a[at : at + STEP], b[at : at + STEP], sums)
        _count(x[at : at + STEP], y[at : at + STEP], counts)
    _add_rest(a[whole:], b[whole:], sums)
    _count(x[whole:], y[whole:], counts)


@njit(inline="always")
def _widen(raw: Any, brain: Any, out: Any) -> None:  # pragma: no cover - compiled
    """Bits of bfloat16 (brain) or float16 as those of float32."""
    if brain:
        for i in range(raw.shape[0]):
            out[i] = np.uint32(raw[i]) << np.uint32(16)
        return
    values = out.view(np.float32)
    for i in range(raw.shape[0]):
        out[i] = (np.uint32(raw[i]) & np.uint32(0x7FFF)) << np.uint32(13)
    for i in range(raw.shape[0]):
        values[i] = values[i] * np.float32(5.192296858534828e33)  # 2^112: from half's exponent to float32's.
    for i in range(raw.shape[0]):
        bits = np.uint32(raw[i])
        sign = (bits & np.uint32(0x8000)) << np.uint32(16)
        out[i] = out[i] | sign | (_ODD if (bits & _HALF) == _HALF else _NONE)


@njit(_NARROW, cache=True, nogil=True, error_model="numpy", boundscheck=False)
def _pair_narrow(x: Any, y: Any, brain: Any, sums: Any, counts: Any) -> None:  # pragma: no cover - compiled
    one, two = np.empty(STEP, np.uint32), np.empty(STEP, np.uint32)
    a, b = one.view(np.float32), two.view(np.float32)
    for at in range(0, x.shape[0], STEP):
        n = min(STEP, x.shape[0] - at)
        _widen(x[at : at + n], brain, one)
        _widen(y[at : at + n], brain, two)
        if n == STEP:
            _add(a, b, sums)
        else:
            _add_rest(a[:n], b[:n], sums)
        _count(one[:n], two[:n], counts)


def pair(a: Any, b: Any, kind: str, sums: Any) -> Any:
    """(6,) counts of two pieces of one kind ("float32", "bfloat16", "float16"); their sums are added to (7, WIDTH)
    `sums`, from the first column on. See `kernel.py`."""
    counts = np.array([0, 0, 0, 0, 0xFFFFFFFF, 0], np.int64)
    one, two = np.ascontiguousarray(a), np.ascontiguousarray(b)
    if kind == "float32":
        _pair(one.view(np.uint32), two.view(np.uint32), sums, counts)
    else:
        _pair_narrow(one.view(np.uint16), two.view(np.uint16), kind == "bfloat16", sums, counts)
    return counts
