"""The numbers of a patch merging in another order: channel by channel, as torch's Unfold gives them, or cell by cell.

The last axis has channels x 2 x 2 numbers (Unfold: channels, then rows, then columns of cells) or 2 x 2 x channels (the
Swin authors' slices: columns of cells, then rows, then channels); one is the other read backwards. The argument is the
file's sizes, "C,2,2" or "2,2,C". Source: mmpretrain's converters, `correct_unfold_reduction_order`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Operation, Part, argument_of
from inspector.keys.report import Step, StepKind


def _sizes(step: Step) -> tuple[int, int, int]:
    a, b, c = (int(size) for size in argument_of(step).split(","))
    return a, b, c


def _moved(tensor: RawTensor, sizes: tuple[int, int, int]) -> RawTensor:
    return tensor.reshape((-1, *sizes)).permute((0, 3, 2, 1)).contiguous().reshape(tensor.shape)


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return _moved(tensors[step.sources[0]], _sizes(step))


def _undo(step: Step, tensor: RawTensor) -> tuple[Part, ...]:
    a, b, c = _sizes(step)
    return (Part(step.sources[0], _moved(tensor, (c, b, a))),)


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        a, b, c = _sizes(step)
        lines += [
            f"cells = state[{step.target!r}]",
            f"state[{step.target!r}] = cells.reshape(-1, {a}, {b}, {c}).permute(0, 3, 2, 1).reshape(cells.shape)",
        ]
    return lines


OPERATION = Operation(
    id="merging",
    kinds=(StepKind.PERMUTE,),
    way="merging",
    says="reorder the merged patches of {}",
    make=_make,
    undo=_undo,
    lines=_lines,
)
