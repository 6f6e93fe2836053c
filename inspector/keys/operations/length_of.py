"""The length of each filter of a kernel, as weight norm keeps it beside the kernel as direction: g = |w|, v = w."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from inspector.keys.operations.entry import Moment, Operation, argument_of
from inspector.keys.report import Step, StepKind

if TYPE_CHECKING:
    from torch import Tensor


def _make(step: Step, tensors: Mapping[str, Tensor]) -> Tensor:
    import torch

    made: Tensor = torch.norm_except_dim(tensors[step.sources[0]], 2, int(argument_of(step)))
    return made


def _check(step: Step, tensors: Mapping[str, Tensor]) -> str:
    if bool((_make(step, tensors) == 0).any()):
        return f"{step.source} has a filter of length zero, which weight norm cannot hold: it would compute NaN."
    return ""


def _lines(steps: Sequence[Step]) -> list[str]:
    return [f"made[{s.target!r}] = torch.norm_except_dim(state[{s.source!r}], 2, {argument_of(s)})" for s in steps]


OPERATION = Operation(
    id="length-of",
    kinds=(StepKind.TIE,),
    way="length",
    says="take {} from the length of each filter",
    moment=Moment.FILE,
    make=_make,
    lines=_lines,
    check=_check,
    otherwise="Build the model without weight norm.",
)
