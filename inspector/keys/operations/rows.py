"""Rows in another order: of each group of A x B rows, the one at (a, b) goes to (b, a).

The argument is "A,B", and "A,B,turned" where the file has the matrix as (in, out). Rotary pairs become halves with
"SIZE/2,2" (source: transformers' converters for Llama, `w.view(heads, size // 2, 2, in).transpose(1, 2)`), and a layer
in front of a picture that is unfolded place by place becomes torch's with "PLACES,CHANNELS".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Operation, Part, argument_of
from inspector.keys.report import Step, StepKind


def _sizes(step: Step) -> tuple[int, int, bool]:
    a, b, *turned = argument_of(step).split(",")
    return int(a), int(b), bool(turned)


def _moved(tensor: RawTensor, a: int, b: int) -> RawTensor:
    # (groups x a x b, ...) -> (groups, a, b, ...) -> (groups, b, a, ...)
    grouped = tensor.reshape((-1, a, b, *tensor.shape[1:]))
    return grouped.permute((0, 2, 1, *range(3, len(grouped.shape)))).reshape(tensor.shape).contiguous()


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    a, b, turned = _sizes(step)
    tensor = tensors[step.sources[0]]
    return _moved(tensor.permute((1, 0)) if turned else tensor, a, b)


def _undo(step: Step, tensor: RawTensor) -> tuple[Part, ...]:
    a, b, turned = _sizes(step)
    rows = _moved(tensor, b, a)
    return (Part(step.sources[0], rows.permute((1, 0)).contiguous() if turned else rows),)


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        a, b, turned = _sizes(step)
        lines += [
            f"rows = state[{step.target!r}]" + (".t()" if turned else ""),
            f"rows = rows.reshape(-1, {a}, {b}, *rows.shape[1:]).transpose(1, 2).reshape(rows.shape)",
            f"state[{step.target!r}] = rows.contiguous()",
        ]
    return lines


OPERATION = Operation(
    id="rows",
    kinds=(StepKind.PERMUTE,),
    way="rows",
    says="reorder the rows of {}",
    make=_make,
    undo=_undo,
    lines=_lines,
)
