"""Two tiles held against each other: sums, counts and extremes. Compiled where numba is installed, else numpy.

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
from inspector.compare.numbers import Change, PairNumbers, add_up
from inspector.weights import kernel
from inspector.weights.moments import WIDTH, column_sums

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
    kind = DTYPES[dtype]
    if dtype == "bool":
        truth: NDArray[Any] = (raw.view(np.uint8) != 0).astype(np.float32)
        return truth
    if not kind.native or kind.itemsize <= 2:
        with np.errstate(invalid="ignore"):
            return to_float32(raw, dtype)
    wide: NDArray[Any] = np.asarray(raw, np.float32 if dtype == "float32" else np.float64)
    return wide


class PairSums:
    """What was found in the tiles of two tensors so far; they come in row-major order.

    a_type, b_type: how the tiles' elements are to be read (`Decoded.dtype`).
    """

    def __init__(self, a_type: str, b_type: str) -> None:
        self.a_type, self.b_type = a_type, b_type
        self._held: list[PairNumbers] = []
        self._largest: Change | None = None
        self._n = 0

    def add(self, a: NDArray[Any], b: NDArray[Any]) -> None:
        """The next tiles, equally long, not empty."""
        loops = _loops() if self.a_type == self.b_type and self.a_type in _KINDS and kernel.compiled() else None
        if loops is None or not self._compiled(loops, a, b):
            self._by_numpy(a, b)
        self._n += len(a)

    def result(self) -> PairNumbers:
        """Of all of them."""

        return dataclasses.replace(add_up(self._held), largest=self._largest)

    def _compiled(self, loops: ModuleType, a: NDArray[Any], b: NDArray[Any]) -> bool:
        """Whether it could be done: not where anything is NaN or infinite."""
        sums, counts = loops.pair(a, b, self.a_type)
        if counts[5] >= _ODD:
            return False
        self._found(a, b, float(sums[6].max()))
        self._held.append(
            PairNumbers(
                n=len(a),
                finite=len(a),
                equal=int(counts[0]),
                zeroed=int(counts[1]),
                sign_flips=int(counts[2]),
                largest_zeroed=_float(int(counts[3])) if counts[1] else None,
                smallest_kept=_float(int(counts[4]) + 1) if counts[4] != _NOTHING else None,
                **_added(sums[:6]),
            )
        )
        return True

    def _by_numpy(self, a: NDArray[Any], b: NDArray[Any]) -> None:
        x, y = values(a, self.a_type), values(b, self.b_type)
        finite = np.isfinite(x) & np.isfinite(y)
        absent = None if finite.all() else ~finite
        p, q = x.astype(np.float64), y.astype(np.float64)
        if absent is not None:
            p[absent] = q[absent] = 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            apart = q - p
            columns = [column_sums(each) for each in (p, q, p * p, q * q, apart * apart, p * q)]
            worst = float(np.abs(apart).max())
        self._found(a, b, worst)
        nan_a, nan_b = np.isnan(x), np.isnan(y)
        both = int(np.count_nonzero(nan_a & nan_b))
        # Integers of 64 bits are told apart before they are rounded.
        wide = all(_is_wide(kind) for kind in (self.a_type, self.b_type))
        equal = (a == b) if wide else (x == y)
        gone = finite & (y == 0) & (x != 0)
        kept = finite & (y != 0) & (x != 0)
        size = np.abs(p)
        self._held.append(
            PairNumbers(
                n=len(x),
                finite=int(np.count_nonzero(finite)),
                equal=int(np.count_nonzero(equal)) + both,
                nan_a=int(np.count_nonzero(nan_a)),
                nan_b=int(np.count_nonzero(nan_b)),
                infinite_a=int(np.count_nonzero(np.isinf(x))),
                infinite_b=int(np.count_nonzero(np.isinf(y))),
                nan_both=both,
                odd_equal=both + int(np.count_nonzero(np.isinf(x) & (x == y))),
                zeroed=int(np.count_nonzero(gone)),
                largest_zeroed=float(size[gone].max()) if gone.any() else None,
                smallest_kept=float(size[kept].min()) if kept.any() else None,
                sign_flips=int(np.count_nonzero(kept & (np.signbit(p) != np.signbit(q)))),
                **_added(np.array(columns)),
            )
        )

    def _found(self, a: NDArray[Any], b: NDArray[Any], worst: float) -> None:
        """Where a tile has the largest change so far, its place is looked up."""
        if not worst > (self._largest.size if self._largest is not None else 0.0):
            return
        p, q = (values(raw, kind).astype(np.float64) for raw, kind in ((a, self.a_type), (b, self.b_type)))
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.abs(q - p)
        at = int(np.flatnonzero((apart == worst) & np.isfinite(p) & np.isfinite(q))[0])
        self._largest = Change(index=self._n + at, a=float(p[at]), b=float(q[at]), size=worst)


def _added(columns: NDArray[np.float64]) -> dict[str, Any]:
    """(6, WIDTH) sums of columns -> the sums by name, the columns in numpy's pairwise order."""
    assert columns.shape[1] == WIDTH
    names = ("sum_a", "sum_b", "square_a", "square_b", "square_delta", "dot")
    with np.errstate(over="ignore", invalid="ignore"):
        return {name: float(np.add.reduce(row)) for name, row in zip(names, columns, strict=True)}


def _is_wide(dtype: str) -> bool:
    return dtype in ("int64", "uint64")


def _float(bits: int) -> float:
    return float(np.array([bits], np.uint32).view(np.float32)[0])
