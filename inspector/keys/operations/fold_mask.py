"""A pruned tensor multiplied by its mask, as torch's pruning does in every forward pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Moment, Operation
from inspector.keys.report import Step, StepKind


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    held, mask = (tensors[name] for name in step.sources)
    numbers = held.numbers
    with np.errstate(invalid="ignore"):
        return held.with_numbers(mask.numbers.astype(numbers.dtype) * numbers)


def _check(step: Step, tensors: Mapping[str, RawTensor]) -> str:
    mask = tensors[step.sources[1]].numbers
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
