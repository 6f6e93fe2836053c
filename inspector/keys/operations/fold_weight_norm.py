"""Weight norm worked out: direction and length of each filter as the one kernel they stand for, w = g * v / |v|.

Salimans 2016, equation 2, by torch's own function, so that the kernel is the one the layer computes with; it is a
rounded product and not what a layer without weight norm would have been saved with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from inspector.keys.operations.entry import Moment, Operation, argument_of
from inspector.keys.report import Step, StepKind

if TYPE_CHECKING:
    from torch import Tensor


def _make(step: Step, tensors: Mapping[str, Tensor]) -> Tensor:
    import torch

    length, direction = (tensors[name] for name in step.sources)
    made: Tensor = torch._weight_norm(direction, length, int(argument_of(step)))
    return made


def _check(step: Step, tensors: Mapping[str, Tensor]) -> str:
    import torch

    _, direction = (tensors[name] for name in step.sources)
    if bool((torch.norm_except_dim(direction, 2, int(argument_of(step))) == 0).any()):
        return f"{step.sources[1]} has a filter of length zero, which has no direction: the layer computes NaN of it."
    return ""


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        length, direction = (f"state[{name!r}]" for name in step.sources)
        lines.append(f"made[{step.target!r}] = torch._weight_norm({direction}, {length}, {argument_of(step)})")
    return lines


OPERATION = Operation(
    id="fold-weight-norm",
    kinds=(StepKind.MERGE,),
    way="weight-norm",
    says="work out the weight norm of {}",
    moment=Moment.FILE,
    make=_make,
    lines=_lines,
    check=_check,
    otherwise="Such a layer is broken in the file itself.",
)
