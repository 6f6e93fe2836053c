"""Rows of a tensor that are left out because they are zero, and have no place of their own: the bias of BEiT's keys,
RoBERTa's segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Moment, Operation, argument_of
from inspector.keys.report import Step, StepKind

# The argument where these rows are all that the tensor has: no other step takes it off the state dict then.
WHOLE = "whole"


def _check(step: Step, tensors: Mapping[str, RawTensor]) -> str:
    rows = tensors[step.sources[0]].rows(*step.rows).numbers
    count = int(np.count_nonzero(rows))
    if not count:
        return ""
    return (
        f"{count:,} of the {rows.size:,} numbers {step.rows[0]} to {step.rows[1]} of {step.source} are not zero, "
        "and the target has no place for them."
    )


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        lines += [
            f"if state[{step.source!r}][{step.rows[0]} : {step.rows[1]}].any():",
            f"    raise ValueError({f'{step.source} is not zero where it must be'!r})",
            *([f"del state[{step.source!r}]"] if argument_of(step) == WHOLE else []),
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
    otherwise="The target adds nothing there, where this file does: this is another network.",
)
