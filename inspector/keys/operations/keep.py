"""A tensor as it is, under its own or another name. The renaming of names is written by the rules, not here."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Operation, whole
from inspector.keys.report import Step, StepKind


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return tensors[step.sources[0]]


OPERATION = Operation(id="keep", kinds=(StepKind.KEEP, StepKind.RENAME), says="keep {}", make=_make, undo=whole)
