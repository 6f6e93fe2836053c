"""Floating tensors in another type, block by block; tensors that shared memory still do. Says what that cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.casts import cast, has_numbers, numbers_of
from inspector.checkpoint.dtypes import DTYPES
from inspector.errors import UsageError
from inspector.exports.report import CastReport
from inspector.exports.stream import Block, Memory, Stream
from inspector.units import counted

DTYPE_CHOICES = ("float32", "float16", "bfloat16")
# As `numbers_of` gives them.
Numbers = NDArray[np.generic]
_PIECE = 1 << 16  # elements, which stay in the processor's cache


@dataclass(frozen=True, slots=True)
class _Loss:
    """What one block lost: see `CastReport`."""

    error: float = 0.0
    overflows: int = 0
    underflows: int = 0

    def with_piece(self, held: Numbers, made: Numbers) -> _Loss:
        """Together with a further piece. held, made: (n,), the numbers before and after, real floats."""
        wide = np.float64 if held.dtype == np.float64 else np.float32
        old, new = held.astype(wide, copy=False), made.astype(wide, copy=False)
        finite = np.isfinite(old)
        over = finite & np.isinf(new)
        under = (old != 0) & (new == 0)
        kept = finite & (old != 0) & ~over & ~under
        # The smallest numbers of a type have a reciprocal that overflows, but a ratio of two of them does not.
        errors = np.abs(new[kept] - old[kept]) / np.abs(old[kept])
        return _Loss(
            max(self.error, float(errors.max(initial=0.0))),
            self.overflows + int(over.sum()),
            self.underflows + int(under.sum()),
        )


class Cast:
    """A stream in another type. stream: what to write; once it has been made, `report` knows what that cost."""

    def __init__(self, stream: Stream, dtype: str) -> None:
        if dtype not in DTYPE_CHOICES:
            raise UsageError(f'"{dtype}" is no type to export.', hint=f"Choose one of {', '.join(DTYPE_CHOICES)}.")
        self._name = dtype
        self._losses: dict[int, _Loss] = {}
        self._count = 0
        blocks = tuple(map(self._block, range(len(stream.blocks)), stream.blocks))
        self.stream = replace(stream, blocks=blocks, cast_to=dtype if self._count else "")

    def _block(self, number: int, block: Block) -> Block:
        real = DTYPES[block.dtype].floating and has_numbers(block.dtype) and "complex" not in block.dtype
        if not real or block.dtype == self._name:
            return block
        self._count += len(block.entries)
        return replace(block, dtype=self._name, make=partial(self._make, number, block.dtype, block.make))

    def _make(self, number: int, dtype: str, make: Callable[[], Memory]) -> Memory:
        memory = make()
        made = np.empty(memory.size, DTYPES[self._name].raw)
        # Made once for writing and once for reading back: the same numbers lose the same.
        measured = number in self._losses
        loss = _Loss()
        for at in range(0, memory.size, _PIECE):
            held = memory[at : at + _PIECE]
            piece = cast(held, dtype, self._name)
            made[at : at + _PIECE] = piece
            if not measured:
                loss = loss.with_piece(numbers_of(held, dtype), numbers_of(piece, self._name))
        self._losses.setdefault(number, loss)
        return made

    @property
    def report(self) -> CastReport | None:
        """What was cast, None when nothing was."""
        if not self._count:
            return None
        losses = self._losses.values()
        error = max((loss.error for loss in losses), default=0.0)
        over, under = sum(loss.overflows for loss in losses), sum(loss.underflows for loss in losses)
        what = f"{counted(self._count, 'tensor')} cast to {self._name}"
        if error or over or under:
            says = f"{what}; largest rounding error {error:.2g} (relative), "
            says += f"{counted(over, 'overflow')}, {counted(under, 'underflow')}."
        else:
            says = f"{what}; every number is exactly what it was."
        return CastReport(
            dtype=self._name,
            tensors=self._count,
            largest_relative_error=error,
            overflows=over,
            underflows=under,
            says=says,
        )
