"""A state dict that is not in memory: names and shapes now, the numbers of one block at a time.

Memory is told as torch tells it: blocks (storages), and named views into them. Two tensors of one block stay tied where
the format can say so. Whoever writes or compares asks a block for its numbers, uses them, and lets go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import row_major
from inspector.checkpoint.raw_tensor import RawTensor
from inspector.errors import LimitExceeded
from inspector.units import human_bytes

_MOST_EXPANDED = 16
_EXPANDED_NBYTES = 1 << 30

# Called with a name before each block is made: progress, and where the work may be stopped.
Tick = Callable[[str], None]
# The bits of a block in order, (numel,), of its type's `DType.raw`.
Memory = NDArray[np.generic]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One named tensor: a view of the block, which begins at its first element. shape, stride, offset in elements."""

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0

    @property
    def numel(self) -> int:
        """Number of elements; 1 for a scalar."""
        return math.prod(self.shape)

    def of(self, memory: Memory, dtype: str) -> RawTensor:
        """This view of the block's numbers, (numel,)."""
        steps = tuple(step * memory.itemsize for step in self.stride)
        return RawTensor(dtype, as_strided(memory[self.offset :], self.shape, steps, writeable=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A run of memory and the tensors in it.

    dtype: torch's name. numel: its elements. make: reads or computes them anew each time, always the same numbers;
    raises ReadError where the file does not hold them.
    """

    dtype: str
    numel: int
    entries: tuple[Entry, ...]
    make: Callable[[], Memory]

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return DTYPES[self.dtype].itemsize

    @property
    def nbytes(self) -> int:
        """Of the memory, however many tensors show it."""
        return self.numel * self.itemsize


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What is to be written. names: the order of the state dict. versions: torch's `_metadata`. cast_to: the type that
    tensors were cast to on the way, "" for none."""

    names: tuple[str, ...]
    blocks: tuple[Block, ...]
    versions: tuple[tuple[str, int], ...] = ()
    cast_to: str = ""

    @property
    def nbytes(self) -> int:
        """Of all blocks."""
        return sum(block.nbytes for block in self.blocks)

    @property
    def places(self) -> dict[str, tuple[int, Entry]]:
        """Name -> (number of its block, its view)."""
        return {entry.name: (number, entry) for number, block in enumerate(self.blocks) for entry in block.entries}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name -> shape, in the order of the state dict."""
        places = self.places
        return {name: places[name][1].shape for name in self.names}

    def ties(self) -> tuple[tuple[str, str], ...]:
        """(tensor, the first tensor whose memory it shares)."""
        return tuple((e.name, b.entries[0].name) for b in self.blocks for e in b.entries[1:] if e.numel)

    def made(self, tick: Tick) -> Iterator[tuple[Block, Memory]]:
        """Each block with its numbers, one at a time: let go of them before asking for the next."""
        for block in self.blocks:
            tick(block.entries[0].name)
            yield block, block.make()


def own_block(name: str, shape: tuple[int, ...], dtype: str, make: Callable[[], RawTensor]) -> Block:
    """A block of one tensor that shares its memory with nobody, in row-major order. make: gives it in its shape."""
    entry = Entry(name=name, shape=shape, stride=row_major(shape))
    return Block(dtype=dtype, numel=entry.numel, entries=(entry,), make=lambda: in_order(make()))


def in_order(tensor: RawTensor) -> Memory:
    """A tensor's elements in row-major order; a copy only where they do not lie so."""
    return np.ascontiguousarray(tensor.array).reshape(-1)


def check_expanded(block: Block) -> None:
    """Raise LimitExceeded for a view that repeats a few numbers so often that it could not be written out."""
    for entry in block.entries:
        nbytes = entry.numel * block.itemsize
        if nbytes > max(_EXPANDED_NBYTES, _MOST_EXPANDED * block.nbytes):
            raise LimitExceeded(
                f"{entry.name} repeats {human_bytes(block.nbytes)} as {human_bytes(nbytes)}.",
                hint="An expanded view this large is not written out.",
            )
