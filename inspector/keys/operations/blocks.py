"""Equal runs of rows in another order: gate and value, shift and scale.

The argument is the order: "1-0-2" puts the file's second run first, its first second, and its third third.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor, join
from inspector.keys.operations.entry import Operation, Part, argument_of, in_parts
from inspector.keys.report import Step, StepKind


def _order(step: Step) -> list[int]:
    return [int(at) for at in argument_of(step).split("-")]


def _moved(tensor: RawTensor, order: Sequence[int]) -> RawTensor:
    parts = in_parts(tensor.contiguous(), len(order))
    return join([parts[at] for at in order])


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return _moved(tensors[step.sources[0]], _order(step))


def _undo(step: Step, tensor: RawTensor) -> tuple[Part, ...]:
    order = _order(step)
    return (Part(step.sources[0], _moved(tensor, sorted(range(len(order)), key=order.__getitem__))),)


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        order = _order(step)
        lines += [
            f"runs = state[{step.target!r}].chunk({len(order)})",
            f"state[{step.target!r}] = torch.cat([runs[at] for at in {tuple(order)!r}])",
        ]
    return lines


OPERATION = Operation(
    id="blocks",
    kinds=(StepKind.PERMUTE,),
    way="blocks",
    says="reorder the runs of rows of {}",
    make=_make,
    undo=_undo,
    lines=_lines,
)
