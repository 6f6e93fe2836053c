"""A table of positions without its last rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Operation
from inspector.keys.report import Step, StepKind


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    shape = step.shape or ()
    held = tensors[step.sources[0]]
    rows = held.reshape((-1, shape[-1]))
    return rows.rows(0, shape[-2]).copy().reshape(shape)


def _lines(steps: Sequence[Step]) -> list[str]:
    return [
        f"state[{s.target!r}] = state[{s.target!r}][..., :{(s.shape or (0, 0))[-2]}, :].clone()  # the first positions"
        for s in steps
    ]


OPERATION = Operation(
    id="first-rows",
    kinds=(StepKind.ADAPT,),
    way="first-rows",
    says="keep the first positions of {}",
    make=_make,
    lines=_lines,
)
