"""Rows of a tensor that are left out because they are zero, and have no place of their own: the bias of BEiT's keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from inspector.keys.operations.entry import Moment, Operation
from inspector.keys.report import Step, StepKind

if TYPE_CHECKING:
    from torch import Tensor


def _check(step: Step, tensors: Mapping[str, Tensor]) -> str:
    rows = tensors[step.sources[0]][step.rows[0] : step.rows[1]]
    count = int((rows != 0).sum())
    if not count:
        return ""
    return (
        f"{count:,} of the {rows.numel():,} numbers {step.rows[0]} to {step.rows[1]} of {step.source} are not zero, "
        "and the target has no place for them."
    )


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        lines += [
            f"if state[{step.source!r}][{step.rows[0]} : {step.rows[1]}].any():",
            f"    raise ValueError({f'{step.source} is not zero where it must be'!r})",
        ]
    return lines


OPERATION = Operation(
    id="drop-zeros",
    kinds=(StepKind.DROP,),
    way="zeros",
    says="leave out rows of {} that are zero",
    moment=Moment.FILE,
    lines=_lines,
    check=_check,
    otherwise="The target's attention has no bias for its keys: this is another network.",
)
