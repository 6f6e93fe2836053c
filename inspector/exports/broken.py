"""Which tensors hold NaN or infinity: an export carries them along, and says so, or leaves those tensors out. Masks
that are made of -inf are none of them.

What is carried along is counted in the numbers that are read to be written; only what is to be left out must be known
before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from inspector.checkpoint.casts import has_numbers, numbers_of
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.masks import is_additive_mask
from inspector.checkpoint.raw_tensor import RawTensor, read_raw
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.exports.stream import Block, Memory, Stream, in_order
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
    asked = (info for info in tensors if _may_be_broken(info.dtype) and info.numel)
    found = (_broken(info.name, read_raw(checkpoint, info)) for info in asked)
    return tuple(broken for broken in found if broken is not None)


class BrokenTally:
    """`find_broken` of a stream, whose blocks are made anyway. stream: what to write instead of it."""

    def __init__(self, stream: Stream) -> None:
        self._found: dict[str, BrokenTensor] = {}
        self._names = stream.names
        # Made once for writing and once for reading back: the same numbers are looked at once.
        self._seen: set[int] = set()
        self.stream = replace(stream, blocks=tuple(map(self._watched, range(len(stream.blocks)), stream.blocks)))

    def _watched(self, number: int, block: Block) -> Block:
        if not _may_be_broken(block.dtype):
            return block
        return replace(block, make=partial(self._make, number, block, block.make))

    def _make(self, number: int, block: Block, make: Callable[[], Memory]) -> Memory:
        memory = make()
        if number not in self._seen:
            self._seen.add(number)
            for entry in block.entries:
                broken = _broken(entry.name, entry.of(memory, block.dtype)) if entry.numel else None
                if broken is not None:
                    self._found[entry.name] = broken
        return memory

    @property
    def found(self) -> tuple[BrokenTensor, ...]:
        """Once all has been made: in the order of the state dict."""
        return tuple(self._found[name] for name in self._names if name in self._found)


def _may_be_broken(dtype: str) -> bool:
    known = DTYPES.get(dtype)
    return known is not None and known.floating and has_numbers(dtype)


def _broken(name: str, tensor: RawTensor) -> BrokenTensor | None:
    memory, dtype = in_order(tensor), tensor.dtype
    nan = infinite = 0
    first: int | None = None
    for at in range(0, len(memory), _PIECE):
        numbers = numbers_of(memory[at : at + _PIECE], dtype)
        bad = ~np.isfinite(numbers)
        if not bad.any():
            continue
        first = at + int(np.argmax(bad)) if first is None else first
        nan += int(np.count_nonzero(np.isnan(numbers)))
        infinite += int(np.count_nonzero(bad & ~np.isnan(numbers)))
    if first is None:
        return None
    numbers_in = (numbers_of(memory[at : at + _PIECE], dtype) for at in range(0, len(memory), _PIECE))
    if not nan and is_additive_mask(name, numbers_in):
        return None  # On purpose, and no forward pass answers NaN for it.
    return BrokenTensor(name=name, shape=tuple(tensor.shape), nan=nan, infinite=infinite, first=first)
