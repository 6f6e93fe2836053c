"""Equal runs of rows in another order: gate and value, shift and scale.

The argument is the order: "1-0-2" puts the file's second run first, its first second, and its third third; "1-0,turned"
where the file has the matrix as (in, out).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor, join
from inspector.keys.operations.entry import Operation, Part, argument_of, in_parts
from inspector.keys.report import Step, StepKind


def turned(value: str) -> str:
    """The same for a matrix that lies (in, out), "" where this operation is not the one that does it."""
    return f"{value},turned" if value.startswith("blocks:") else ""


def _order(step: Step) -> tuple[list[int], bool]:
    order, *flags = argument_of(step).split(",")
    return [int(at) for at in order.split("-")], bool(flags)


def _moved(tensor: RawTensor, order: Sequence[int]) -> RawTensor:
    parts = in_parts(tensor.contiguous(), len(order))
    return join([parts[at] for at in order])


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    order, is_turned = _order(step)
    tensor = tensors[step.sources[0]]
    return _moved(tensor.permute((1, 0)) if is_turned else tensor, order)


def _undo(step: Step, tensor: RawTensor) -> tuple[Part, ...]:
    order, is_turned = _order(step)
    rows = _moved(tensor, sorted(range(len(order)), key=order.__getitem__))
    return (Part(step.sources[0], rows.permute((1, 0)).contiguous() if is_turned else rows),)


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        order, is_turned = _order(step)
        lines += [
            f"runs = state[{step.target!r}]{'.t()' if is_turned else ''}.chunk({len(order)})",
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
