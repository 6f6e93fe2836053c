"""Square matrices in one tensor, each the other way round: query, key and value that were fused as (in, out) each.

The argument is "below" for squares below each other (N x D, D), and behind each other in a stack (N, D, D), or
"beside" for squares side by side (D, N x D). Done twice it is undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Operation, Part, argument_of
from inspector.keys.report import Step, StepKind

BELOW, BESIDE = "squares:below", "squares:beside"


def _made(step: Step, tensor: RawTensor) -> RawTensor:
    if argument_of(step) == "below":
        size = tensor.shape[-1]
        return tensor.contiguous().reshape((-1, size, size)).permute((0, 2, 1)).contiguous().reshape(tensor.shape)
    # (D, N x D) or (L, D, N x D): (L, D, N, D) with its two D exchanged.
    size = tensor.shape[-2]
    parts = tensor.contiguous().reshape((-1, size, tensor.shape[-1] // size, size))
    return parts.permute((0, 3, 2, 1)).contiguous().reshape(tensor.shape)


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return _made(step, tensors[step.sources[0]])


def _undo(step: Step, tensor: RawTensor) -> tuple[Part, ...]:
    return (Part(step.sources[0], _made(step, tensor)),)


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        lines.append(f"whole = state[{step.target!r}]")
        if argument_of(step) == "below":
            turned = "whole.reshape(-1, whole.shape[-1], whole.shape[-1]).transpose(1, 2)"
        else:
            turned = "whole.reshape(-1, whole.shape[-2], whole.shape[-1] // whole.shape[-2], whole.shape[-2])"
            turned += ".transpose(1, 3)"
        lines.append(f"state[{step.target!r}] = {turned}.reshape(whole.shape).contiguous()")
    return lines


OPERATION = Operation(
    id="squares",
    kinds=(StepKind.PERMUTE,),
    way="squares",
    says="transpose each matrix in {}",
    make=_make,
    undo=_undo,
    lines=_lines,
)
