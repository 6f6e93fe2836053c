"""Floating tensors in another type, block by block; tensors that shared memory still do. Says what that cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from inspector.errors import UsageError
from inspector.exports.stream import Block, Stream
from inspector.units import counted

DTYPE_CHOICES = ("float32", "float16", "bfloat16")
_PIECE = 1 << 22


class Cast:
    """A stream in another type. stream: what to write; once it has been made, `says` knows what overflowed."""

    def __init__(self, stream: Stream, dtype: str) -> None:
        if dtype not in DTYPE_CHOICES:
            raise UsageError(f'"{dtype}" is no type to export.', hint=f"Choose one of {', '.join(DTYPE_CHOICES)}.")
        self._name = dtype
        self._wanted: torch.dtype = getattr(torch, dtype)
        self._infinite: dict[int, int] = {}
        self._count = 0
        self.stream = replace(stream, blocks=tuple(map(self._block, range(len(stream.blocks)), stream.blocks)))

    def _block(self, number: int, block: Block) -> Block:
        if not block.dtype.is_floating_point or block.dtype is self._wanted:
            return block
        self._count += len(block.entries)
        return replace(block, dtype=self._wanted, make=partial(self._make, number, block.make))

    def _make(self, number: int, make: Callable[[], Tensor]) -> Tensor:
        memory = make()
        made = torch.empty(memory.shape, dtype=self._wanted)
        infinite = 0
        for at in range(0, memory.numel(), _PIECE):
            # In pieces: looking for infinities makes copies.
            piece = memory[at : at + _PIECE]
            cast = made[at : at + _PIECE].copy_(piece)
            infinite += int((torch.isinf(cast.float()) & torch.isfinite(piece.float())).sum())
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
