"""The same numbers with the axes in another order: a matrix the other way round, a kernel stored channels last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Operation, Part
from inspector.keys.report import Step, StepKind


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return tensors[step.sources[0]].permute(step.axes).contiguous()


def _undo(step: Step, tensor: RawTensor) -> tuple[Part, ...]:
    inverse = sorted(range(len(step.axes)), key=step.axes.__getitem__)
    return (Part(step.sources[0], tensor.permute(inverse).contiguous()),)


def _lines(steps: Sequence[Step]) -> list[str]:
    return [f"state[{s.target!r}] = state[{s.target!r}].permute({s.axes!r}).contiguous()" for s in steps]


OPERATION = Operation(
    id="permute", kinds=(StepKind.PERMUTE,), says="transpose {}", make=_make, undo=_undo, lines=_lines
)
