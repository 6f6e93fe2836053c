"""A pruned tensor multiplied by its mask, as torch's pruning does in every forward pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from inspector.keys.operations.entry import Moment, Operation
from inspector.keys.report import Step, StepKind

if TYPE_CHECKING:
    from torch import Tensor


def _make(step: Step, tensors: Mapping[str, Tensor]) -> Tensor:
    held, mask = (tensors[name] for name in step.sources)
    return mask.to(dtype=held.dtype) * held


def _check(step: Step, tensors: Mapping[str, Tensor]) -> str:
    mask = tensors[step.sources[1]]
    if bool(((mask == 0) | (mask == 1)).all()):
        return ""
    return f"{step.sources[1]} holds other numbers than 0 and 1: it is no pruning mask."


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        held, mask = (f"state[{name!r}]" for name in step.sources)
        lines.append(f"made[{step.target!r}] = {mask}.to({held}.dtype) * {held}")
    return lines


OPERATION = Operation(
    id="fold-mask",
    kinds=(StepKind.MERGE,),
    way="mask",
    says="multiply {} by its mask",
    moment=Moment.FILE,
    make=_make,
    lines=_lines,
    check=_check,
    otherwise="Leave the mask out by hand if it is something else.",
)
