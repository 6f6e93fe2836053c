"""Which tensors have lost a batch of one to a squeeze, and what was computed from them."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from inspector.doctor.frames import own_line
from inspector.doctor.report import SourceLine
from inspector.forward.watch import Operation


@dataclass(frozen=True, slots=True)
class Squeeze:
    """A squeeze that took dimension 0 away. before, after: shapes. named: whether the dimension was named."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    named: bool
    line: SourceLine | None


class Squeezes:
    """Hears of each operator and hands a squeeze on to what is computed from its output."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[weakref.ref[Tensor], Squeeze]] = {}

    def of(self, tensor: Tensor) -> Squeeze | None:
        """The squeeze that it or what it was computed from went through."""
        kept = self._of.get(id(tensor))
        return kept[1] if kept is not None and kept[0]() is tensor else None

    def operation(self, name: str, operation: Operation, given: Sequence[Tensor], made: Sequence[Tensor]) -> None:
        """given, made: the tensors of this operation."""
        squeeze = next((found for found in map(self.of, given) if found is not None), None) if self._of else None
        if squeeze is None and name.strip("_") == "squeeze" and given and made:
            squeeze = _lost(operation, tuple(given[0].shape), tuple(made[0].shape))
        if squeeze is not None:
            for tensor in made:
                self._of[id(tensor)] = (weakref.ref(tensor), squeeze)


def _lost(operation: Operation, before: tuple[int, ...], after: tuple[int, ...]) -> Squeeze | None:
    """In place, `before` is what is left."""
    dims = operation.args[1] if len(operation.args) > 1 else None
    if len(before) < 2 or before[0] != 1 or len(before) == len(after):
        return None
    if dims is not None:
        listed = dims if isinstance(dims, list | tuple) else [dims]
        if not any(isinstance(dim, int) and dim % len(before) == 0 for dim in listed):
            return None
    return Squeeze(before, after, dims is not None, own_line())
