"""A transposed convolution of Flax: its axes in another order, and its height and width the other way round.

Source: flax.linen.ConvTranspose with transpose_kernel=False, which runs lax.conv_transpose; torch's runs the gradient
of a convolution, whose kernel is mirrored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Operation, Part
from inspector.keys.report import Step, StepKind


def _sides(step: Step) -> tuple[int, ...]:
    return tuple(range(2, len(step.axes)))


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return tensors[step.sources[0]].permute(step.axes).flip(_sides(step)).contiguous()


def _undo(step: Step, tensor: RawTensor) -> tuple[Part, ...]:
    inverse = sorted(range(len(step.axes)), key=step.axes.__getitem__)
    return (Part(step.sources[0], tensor.flip(_sides(step)).permute(inverse).contiguous()),)


def _lines(steps: Sequence[Step]) -> list[str]:
    return [
        f"state[{s.target!r}] = state[{s.target!r}].permute({s.axes!r}).flip({_sides(s)!r}).contiguous()" for s in steps
    ]


OPERATION = Operation(
    id="flipped",
    kinds=(StepKind.PERMUTE,),
    way="flipped",
    says="flip the kernel {}",
    make=_make,
    undo=_undo,
    lines=_lines,
)
