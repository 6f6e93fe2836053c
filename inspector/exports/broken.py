"""Which tensors hold NaN or infinity: an export carries them along, and says so, or leaves those tensors out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from inspector.checkpoint.casts import has_numbers, numbers_of
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.raw_tensor import read_raw
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.units import counted, human_place

_PIECE = 1 << 20  # elements


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenTensor:
    """first: the flat index, in row-major order, of the first number that is not finite."""

    name: str
    shape: tuple[int, ...]
    nan: int
    infinite: int
    first: int

    @property
    def says(self) -> str:
        """ "norm.running_var: 1 NaN, the first at [2]"."""
        counts = [f"{self.nan:,} NaN"] if self.nan else []
        counts += [counted(self.infinite, "infinite number")] if self.infinite else []
        place = f", the first at {human_place(self.first, self.shape)}" if self.shape else ""
        return f"{self.name}: {' and '.join(counts)}{place}"


def find_broken(checkpoint: Checkpoint, tensors: Iterable[TensorInfo]) -> tuple[BrokenTensor, ...]:
    """In their order; tensors of whole numbers have none. Raises ReadError for one that cannot be read."""
    found = []
    for info in tensors:
        dtype = DTYPES.get(info.dtype)
        if dtype is None or not dtype.floating or not has_numbers(info.dtype) or not info.numel:
            continue
        broken = _broken(info, np.asarray(read_raw(checkpoint, info).array).reshape(-1))
        if broken is not None:
            found.append(broken)
    return tuple(found)


def _broken(info: TensorInfo, memory: np.ndarray[tuple[int], np.dtype[np.generic]]) -> BrokenTensor | None:
    nan = infinite = 0
    first: int | None = None
    for at in range(0, len(memory), _PIECE):
        numbers = numbers_of(memory[at : at + _PIECE], info.dtype)
        bad = ~np.isfinite(numbers)
        if not bad.any():
            continue
        first = at + int(np.argmax(bad)) if first is None else first
        nan += int(np.count_nonzero(np.isnan(numbers)))
        infinite += int(np.count_nonzero(bad & ~np.isnan(numbers)))
    if first is None:
        return None
    return BrokenTensor(name=info.name, shape=tuple(info.shape), nan=nan, infinite=infinite, first=first)
