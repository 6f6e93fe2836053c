"""A buffer that the file lacks and that follows from its shape alone: positions, the index of a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor, computed_tensor
from inspector.keys.operations.computed import COMPUTED
from inspector.keys.operations.entry import Operation, argument_of
from inspector.keys.report import Step, StepKind


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return computed_tensor(COMPUTED[argument_of(step)].make(step.shape or ()))


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        lines += [*COMPUTED[argument_of(step)].lines(step.shape or ()), f"state[{step.target!r}] = buffer"]
    return lines


OPERATION = Operation(
    id="fill-computed", kinds=(StepKind.FILL,), way="computed", says="compute {}", make=_make, lines=_lines
)
