"""A matrix behind a flattened picture whose rows were flattened channels last: (out, h * w * c) to (out, c * h * w).

The argument is "c,h,w", and "c,h,w,turned" where the file has the matrix as (in, out).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Operation, Part, argument_of
from inspector.keys.report import Step, StepKind


def _sizes(step: Step) -> tuple[int, int, int, bool]:
    channels, height, width, *turned = argument_of(step).split(",")
    return int(channels), int(height), int(width), bool(turned)


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    channels, height, width, turned = _sizes(step)
    matrix = tensors[step.sources[0]]
    matrix = matrix.permute((1, 0)) if turned else matrix
    return matrix.reshape((-1, height, width, channels)).permute((0, 3, 1, 2)).reshape(step.shape or ()).contiguous()


def _undo(step: Step, tensor: RawTensor) -> tuple[Part, ...]:
    channels, height, width, turned = _sizes(step)
    matrix = tensor.reshape((-1, channels, height, width)).permute((0, 2, 3, 1)).reshape((tensor.shape[0], -1))
    return (Part(step.sources[0], (matrix.permute((1, 0)) if turned else matrix).contiguous()),)


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        channels, height, width, turned = _sizes(step)
        lines += [
            f"matrix = state[{step.target!r}]" + (".t()" if turned else ""),
            f"matrix = matrix.reshape(-1, {height}, {width}, {channels}).permute(0, 3, 1, 2)",
            f"state[{step.target!r}] = matrix.reshape({step.shape!r}).contiguous()",
        ]
    return lines


OPERATION = Operation(
    id="flattened",
    kinds=(StepKind.PERMUTE,),
    way="flattened",
    says="reorder the columns of {}",
    make=_make,
    undo=_undo,
    lines=_lines,
)
