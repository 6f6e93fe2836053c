"""Floating tensors in another type, block by block; tensors that shared memory still do. Says what that cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from inspector.checkpoint.casts import cast, has_numbers, numbers_of
from inspector.checkpoint.dtypes import DTYPES
from inspector.errors import UsageError
from inspector.exports.stream import Block, Memory, Stream
from inspector.units import counted

DTYPE_CHOICES = ("float32", "float16", "bfloat16")
_PIECE = 1 << 16  # elements, which stay in the processor's cache


class Cast:
    """A stream in another type. stream: what to write; once it has been made, `says` knows what overflowed."""

    def __init__(self, stream: Stream, dtype: str) -> None:
        if dtype not in DTYPE_CHOICES:
            raise UsageError(f'"{dtype}" is no type to export.', hint=f"Choose one of {', '.join(DTYPE_CHOICES)}.")
        self._name = dtype
        self._infinite: dict[int, int] = {}
        self._count = 0
        self.stream = replace(stream, blocks=tuple(map(self._block, range(len(stream.blocks)), stream.blocks)))

    def _block(self, number: int, block: Block) -> Block:
        real = DTYPES[block.dtype].floating and has_numbers(block.dtype) and "complex" not in block.dtype
        if not real or block.dtype == self._name:
            return block
        self._count += len(block.entries)
        return replace(block, dtype=self._name, make=partial(self._make, number, block.dtype, block.make))

    def _make(self, number: int, dtype: str, make: Callable[[], Memory]) -> Memory:
        memory = make()
        made = np.empty(memory.size, DTYPES[self._name].raw)
        infinite = 0
        for at in range(0, memory.size, _PIECE):
            held = memory[at : at + _PIECE]
            piece = cast(held, dtype, self._name)
            made[at : at + _PIECE] = piece
            lost = np.isinf(numbers_of(piece, self._name))
            if lost.any():
                infinite += int(np.isfinite(numbers_of(held, dtype)[lost]).sum())
        self._infinite[number] = infinite
        return made

    @property
    def says(self) -> tuple[str, ...]:
        """What was cast, () when nothing was."""
        if not self._count:
            return ()
        infinite = sum(self._infinite.values())
        more = f"; {counted(infinite, 'value')} became infinite." if infinite else "."
        return (f"{counted(self._count, 'tensor')} cast to {self._name}{more}",)
