"""Which tensors hold another number of samples than the input, and which view or reshape made it so."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.nn.parameter import is_lazy

from inspector.doctor.frames import own_line
from inspector.doctor.report import SourceLine

_VIEWS = ("view", "_unsafe_view", "reshape")


@dataclass(frozen=True, slots=True)
class Regroup:
    """A view that changed dimension 0. before, after: shapes."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    line: SourceLine | None


class Regroups:
    """Hears of each operator. batch: dimension 0 of the input, 0 where there is none.

    What comes back to as many as the input has (frames as pictures, and back) is none any more.
    """

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._of: dict[int, tuple[weakref.ref[Tensor], Regroup]] = {}

    def of(self, tensor: Tensor) -> Regroup | None:
        """The view that it or what it was computed from went through."""
        kept = self._of.get(id(tensor))
        return kept[1] if kept is not None and kept[0]() is tensor else None

    def operation(self, name: str, given: Sequence[Tensor], made: Sequence[Tensor]) -> None:
        """given, made: the tensors of this operation."""
        # A lazy module's parameters have no shape before its first pass.
        if self._batch < 1 or not made or not given or is_lazy(made[0]) or not made[0].dim():
            return
        if made[0].shape[0] == self._batch:
            return
        found = next((one for one in map(self.of, given) if one is not None), None) if self._of else None
        if found is None and name in _VIEWS:
            before = tuple(given[0].shape)
            if before and before[0] == self._batch:
                found = Regroup(before, tuple(made[0].shape), own_line())
        if found is not None:
            self._of[id(made[0])] = (weakref.ref(made[0]), found)
