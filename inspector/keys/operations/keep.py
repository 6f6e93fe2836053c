"""A tensor as it is, under its own or another name. The renaming of names is written by the rules, not here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from inspector.keys.operations.entry import Operation, whole
from inspector.keys.report import Step, StepKind

if TYPE_CHECKING:
    from torch import Tensor


def _make(step: Step, tensors: Mapping[str, Tensor]) -> Tensor:
    return tensors[step.sources[0]]


OPERATION = Operation(id="keep", kinds=(StepKind.KEEP, StepKind.RENAME), says="keep {}", make=_make, undo=whole)
