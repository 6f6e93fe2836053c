"""The same numbers in the same order, in another shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Operation, whole
from inspector.keys.report import Step, StepKind


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return tensors[step.sources[0]].reshape(step.shape or ())


def _lines(steps: Sequence[Step]) -> list[str]:
    return [f"state[{s.target!r}] = state[{s.target!r}].reshape({s.shape!r})" for s in steps]


OPERATION = Operation(id="reshape", kinds=(StepKind.RESHAPE,), says="reshape {}", make=_make, undo=whole, lines=_lines)
