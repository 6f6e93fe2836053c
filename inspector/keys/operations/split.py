"""Some rows of a tensor as a tensor of their own: the query of a fused attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Moment, Operation, Part
from inspector.keys.report import Step, StepKind


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return tensors[step.sources[0]].rows(*step.rows).copy()


def _undo(step: Step, tensor: RawTensor) -> tuple[Part, ...]:
    return (Part(step.sources[0], tensor, step.rows),)


def _lines(steps: Sequence[Step]) -> list[str]:
    return [f"made[{s.target!r}] = state[{s.source!r}][{s.rows[0]} : {s.rows[1]}].clone()" for s in steps]


OPERATION = Operation(
    id="split",
    kinds=(StepKind.SPLIT,),
    says="take apart {}",
    moment=Moment.FILE,
    make=_make,
    undo=_undo,
    lines=_lines,
)
