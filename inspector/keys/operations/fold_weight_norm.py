"""Weight norm worked out: direction and length of each filter as the one kernel they stand for, w = g * v / |v|.

Salimans 2016, equation 2, by torch's own function, so that the kernel is the one the layer computes with; it is a
rounded product and not what a layer without weight norm would have been saved with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Moment, Operation, argument_of
from inspector.keys.operations.length_of import lengths_of
from inspector.keys.report import Step, StepKind


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    import torch

    from inspector.checkpoint.torch_bridge import by_torch

    length, direction = (tensors[name] for name in step.sources)
    return by_torch(lambda v, g: torch._weight_norm(v, g, int(argument_of(step))), direction, length)


def _check(step: Step, tensors: Mapping[str, RawTensor]) -> str:
    if not lengths_of(tensors[step.sources[1]], int(argument_of(step))).numbers.all():
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
    by_torch=True,
)
