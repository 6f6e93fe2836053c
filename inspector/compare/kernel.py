"""Two tensors held against each other: sums, counts and extremes. Compiled where numba is installed, else numpy.

Both give the very same bits: the order of additions is that of `inspector/weights/moments.py`, all else is exact.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import to_float32
from inspector.checkpoint.dtypes import DTYPES
from inspector.compare.numbers import Change, PairNumbers, add_up, total
from inspector.weights import kernel
from inspector.weights.moments import TILE, WIDTH

#: Numbers of each tensor that are looked at together; whole blocks make a tile of `moments.py`.
BLOCK = 1 << 17
#: What numpy takes at a time: its many intermediate arrays then stay in the cache, too.
_PIECE = 1 << 14
_NAMES = ("sum_a", "sum_b", "square_a", "square_b", "square_delta", "dot")
#: The last of the rows of sums holds the largest change of each column.
_SUMS, _WORST = 7, 6
_WIDE = {"int64", "uint64"}
_KINDS = ("float32", "bfloat16", "float16")
_ODD = 0x7F800000
_NOTHING = 0xFFFFFFFF


@cache
def _loops() -> ModuleType | None:
    try:
        from inspector.compare import kernel_compiled
    except (ImportError, RuntimeError):
        # numba also gives up where it has no folder to keep what it compiled in.
        return None
    return kernel_compiled


def values(raw: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Raw elements as float32 where that has them all, else as float64; integers of 64 bits are rounded to it."""
    if dtype == "bool":
        truth: NDArray[Any] = (raw.view(np.uint8) != 0).astype(np.float32)
        return truth
    if dtype != "float32" and _in_float32(dtype):
        with np.errstate(invalid="ignore"):
            return to_float32(raw, dtype)
    wide: NDArray[Any] = np.asarray(raw, np.float32 if dtype == "float32" else np.float64)
    return wide


class PairSums:
    """What was found in two tensors so far, whose numbers come in pieces of BLOCK, in row-major order.

    a_type, b_type: how the elements are to be read (`Decoded.dtype`).
    """

    def __init__(self, a_type: str, b_type: str) -> None:
        self.a_type, self.b_type = a_type, b_type
        self._narrow = all(_in_float32(dtype) for dtype in (a_type, b_type))
        self._sums = np.zeros((_SUMS, WIDTH))
        # What is there before a piece, to begin again from where it turns out to need another way.
        self._before = np.empty_like(self._sums)
        # Memory that is there already: taking and giving it back each time would cost more than the counting.
        self._room = np.empty((6, _PIECE))
        self._counts: list[PairNumbers] = []
        self._tiles: list[list[float]] = []
        self._largest: Change | None = None
        self._n = 0

    def add(self, a: NDArray[Any], b: NDArray[Any]) -> None:
        """The next pieces, equally long, not empty."""
        loops = _loops() if self._narrow and kernel.compiled() else None
        if loops is None or not self._compiled(loops, a, b):
            for at in range(0, len(a), _PIECE):
                self._by_numpy(a[at : at + _PIECE], b[at : at + _PIECE], self._n + at)
        self._n += len(a)
        if not self._n % TILE:
            self._end_tile()

    def result(self) -> PairNumbers:
        """Of all of them."""
        if self._n % TILE:
            self._end_tile()
        sums: dict[str, Any] = {name: total([tile[at] for tile in self._tiles]) for at, name in enumerate(_NAMES)}
        return dataclasses.replace(add_up(self._counts), largest=self._largest, **sums)

    def _end_tile(self) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            # The columns in numpy's pairwise order; + 0.0 for sums of nothing but -0.
            self._tiles.append([float(np.add.reduce(row)) + 0.0 for row in self._sums[:_WORST]])
        self._sums[:] = 0.0
        self._counts = [add_up(self._counts)]

    def _compiled(self, loops: ModuleType, a: NDArray[Any], b: NDArray[Any]) -> bool:
        """Whether it could be done: not where anything is NaN or infinite."""
        self._before[:] = self._sums
        if self.a_type == self.b_type and self.a_type in _KINDS:
            counts = loops.pair(a, b, self.a_type, self._sums)
        else:
            counts = loops.pair(values(a, self.a_type), values(b, self.b_type), "float32", self._sums)
        if counts[5] >= _ODD:
            self._sums[:] = self._before
            return False
        self._counts.append(
            PairNumbers(
                n=len(a),
                finite=len(a),
                equal=int(counts[0]),
                zeroed=int(counts[1]),
                sign_flips=int(counts[2]),
                largest_zeroed=_float(int(counts[3])) if counts[1] else None,
                smallest_kept=_float(int(counts[4]) + 1) if counts[4] != _NOTHING else None,
            )
        )
        worst = float(self._sums[_WORST].max())
        if worst > self._largest_size:
            # The columns that have it know where to look, which is a row of WIDTH times less than everywhere.
            columns = np.flatnonzero(self._sums[_WORST] == worst)
            at = min(self._first(a, b, int(column), worst) for column in columns)
            self._note(a, b, at, self._n + at, worst)
        return True

    def _by_numpy(self, a: NDArray[Any], b: NDArray[Any], start: int) -> None:
        x, y = values(a, self.a_type), values(b, self.b_type)
        p, q, apart, first, second, both = self._room[:, : len(a)]
        np.copyto(p, x)
        np.copyto(q, y)
        finite = None
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            finite = np.isfinite(x) & np.isfinite(y)
            p[~finite] = q[~finite] = 0.0
        # Integers of 64 bits are told apart before they are rounded.
        equal = (a == b) if {self.a_type, self.b_type} <= _WIDE else (x == y)
        counts = PairNumbers(n=len(x), finite=len(x), equal=int(np.count_nonzero(equal)), **_of_zeros(p, q, apart))
        self._counts.append(counts if finite is None else _with_odd(counts, x, y, finite))
        with np.errstate(over="ignore", invalid="ignore"):
            np.abs(np.subtract(q, p, out=apart), out=apart)
            at = int(apart.argmax())
            if apart[at] > self._largest_size:
                self._note(a, b, at, start + at, float(apart[at]))
            np.multiply(p, p, out=first)
            np.multiply(q, q, out=second)
            np.multiply(p, q, out=both)
            np.multiply(apart, apart, out=apart)
            for row, own in enumerate((p, q, first, second, apart, both)):
                _go_on(self._sums[row], own)

    @property
    def _largest_size(self) -> float:
        return self._largest.size if self._largest is not None else 0.0

    def _first(self, a: NDArray[Any], b: NDArray[Any], column: int, worst: float) -> int:
        """The first element of a column whose change is that large."""
        p, q = self._pair(a[column::WIDTH], b[column::WIDTH])
        return int(np.flatnonzero(np.abs(q - p) == worst)[0]) * WIDTH + column

    def _note(self, a: NDArray[Any], b: NDArray[Any], at: int, index: int, size: float) -> None:
        p, q = self._pair(a[at : at + 1], b[at : at + 1])
        self._largest = Change(index=index, a=float(p[0]), b=float(q[0]), size=size)

    def _pair(self, a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return values(a, self.a_type).astype(np.float64), values(b, self.b_type).astype(np.float64)


def _in_float32(dtype: str) -> bool:
    """Whether float32 has all numbers of a type."""
    return dtype == "float32" or not DTYPES[dtype].native or DTYPES[dtype].itemsize <= 2


def _of_zeros(p: NDArray[np.float64], q: NDArray[np.float64], size: NDArray[np.float64]) -> dict[str, Any]:
    """Of finite numbers: what has to do with zeros and signs. size: is written over."""
    np.abs(p, out=size)
    if np.count_nonzero(p) == np.count_nonzero(q) == len(p):
        return {"sign_flips": int(np.count_nonzero((p < 0) != (q < 0))), "smallest_kept": float(size.min())}
    gone, kept = (q == 0) & (p != 0), (q != 0) & (p != 0)
    return {
        "zeroed": int(np.count_nonzero(gone)),
        "largest_zeroed": float(size[gone].max()) if gone.any() else None,
        "smallest_kept": float(size[kept].min()) if kept.any() else None,
        "sign_flips": int(np.count_nonzero(kept & ((p < 0) != (q < 0)))),
    }


def _with_odd(counts: PairNumbers, x: NDArray[Any], y: NDArray[Any], finite: NDArray[np.bool_]) -> PairNumbers:
    """With what is NaN or infinite; of the zeros that stand for these in the sums nothing was counted."""
    nan_a, nan_b = np.isnan(x), np.isnan(y)
    both = int(np.count_nonzero(nan_a & nan_b))
    return dataclasses.replace(
        counts,
        finite=int(np.count_nonzero(finite)),
        equal=counts.equal + both,
        nan_a=int(np.count_nonzero(nan_a)),
        nan_b=int(np.count_nonzero(nan_b)),
        infinite_a=int(np.count_nonzero(np.isinf(x))),
        infinite_b=int(np.count_nonzero(np.isinf(y))),
        nan_both=both,
        odd_equal=both + int(np.count_nonzero(np.isinf(x) & (x == y))),
    )


def _go_on(sums: NDArray[np.float64], own: NDArray[np.float64]) -> None:
    """Adds rows of WIDTH to the sums of their columns, one after the other; the last row may be short. Spends own."""
    whole = len(own) // WIDTH * WIDTH
    if whole:
        table = own[:whole].reshape(-1, WIDTH)
        table[0] += sums
        np.add.reduce(table, axis=0, out=sums)
    rest = own[whole:]
    sums[: len(rest)] += rest


def _float(bits: int) -> float:
    return float(np.array([bits], np.uint32).view(np.float32)[0])
