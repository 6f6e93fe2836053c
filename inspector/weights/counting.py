"""How often each code of 8 or 16 bits occurs: sparse at first, dense from some thousands of elements on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.weights import kernel

# Below this a dense table costs more than sorting the codes: half of a model's tensors are biases and norms.
_FEW = 8192


class CodeCounter:
    """size: how many codes there are."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._few: list[NDArray[Any]] = []
        self._waiting = 0
        self._dense: NDArray[np.int64] | None = None

    def add(self, codes: NDArray[Any]) -> None:
        """codes: (n,) unsigned."""
        dense = self._table(codes.size)
        if dense is None:
            self._few.append(codes.copy())
        else:
            kernel.count(codes, dense)

    def add_high(self, bits: NDArray[np.uint32]) -> None:
        """The upper 16 bits of each, a NaN made quiet."""
        dense = self._table(bits.size)
        if dense is None:
            codes = (bits >> 16).astype(np.uint16)
            codes[(bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)] |= np.uint16(0x0040)
            self._few.append(codes)
        else:
            kernel.count_high(bits, dense)

    def _table(self, more: int) -> NDArray[np.int64] | None:
        """The dense table, None while the codes are few."""
        if self._dense is None:
            self._waiting += more
            if self._waiting <= _FEW:
                return None
            self._dense = np.zeros(self._size, np.int64)
            for waiting in self._few:
                self._dense += np.bincount(waiting, minlength=self._size)
            self._few = []
        return self._dense

    def result(self) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Codes that occur, ascending, and how often."""
        if self._dense is not None:
            present = np.flatnonzero(self._dense)
            return present, self._dense[present]
        if not self._few:
            return np.empty(0, np.intp), np.empty(0, np.intp)
        codes = np.sort(np.concatenate(self._few))
        # np.unique with counts, without what it does besides for each of thousands of small tensors.
        new = np.empty(len(codes), bool)
        new[:1] = True
        np.not_equal(codes[1:], codes[:-1], out=new[1:])
        first = np.flatnonzero(new)
        return codes[first], np.append(first[1:], len(codes)) - first
