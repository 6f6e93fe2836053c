"""One tensor in a second place: the embedding as the output layer's matrix. Both share their memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Moment, Operation, whole
from inspector.keys.report import Step, StepKind


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return tensors[step.sources[0]]


def _lines(steps: Sequence[Step]) -> list[str]:
    return [f"made[{s.target!r}] = state[{s.source!r}]" for s in steps]


OPERATION = Operation(
    id="tie",
    kinds=(StepKind.TIE,),
    says="fill {} from the tensor it is tied to",
    moment=Moment.FILE,
    make=_make,
    undo=whole,
    lines=_lines,
)
