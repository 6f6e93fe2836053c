"""A tensor that stays at the model's own initial value, to be trained: a head for other classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Moment, Operation
from inspector.keys.report import Step, StepKind


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return tensors[step.target or ""]


def _lines(steps: Sequence[Step]) -> list[str]:
    fresh = [step.target for step in steps]
    return [
        "# These stay at its initial value:",
        f"for key in {fresh!r}:",
        "    state[key] = model.state_dict()[key]",
    ]


OPERATION = Operation(
    id="fill-initial",
    kinds=(StepKind.FILL,),
    way="initial",
    says="fill in {}",
    moment=Moment.MODEL,
    make=_make,
    lines=_lines,
    by_torch=True,
)
