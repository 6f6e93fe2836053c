"""A tensor that stays at the model's own initial value, to be trained: a head for other classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from inspector.keys.operations.entry import Moment, Operation
from inspector.keys.report import Step, StepKind

if TYPE_CHECKING:
    from torch import Tensor


def _make(step: Step, tensors: Mapping[str, Tensor]) -> Tensor:
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
)
