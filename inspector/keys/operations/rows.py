"""Rows in another order: of each group of A x B rows, the one at (a, b) goes to (b, a).

The argument is "A,B", and "A,B,turned" where the file has the matrix as (in, out). Rotary pairs become halves with
"SIZE/2,2" (source: transformers' converters for Llama, `w.view(heads, size // 2, 2, in).transpose(1, 2)`), and a layer
in front of a picture that is unfolded place by place becomes torch's with "PLACES,CHANNELS".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from inspector.keys.operations.entry import Operation, Part, argument_of
from inspector.keys.report import Step, StepKind

if TYPE_CHECKING:
    from torch import Tensor


def _sizes(step: Step) -> tuple[int, int, bool]:
    a, b, *turned = argument_of(step).split(",")
    return int(a), int(b), bool(turned)


def _moved(tensor: Tensor, a: int, b: int) -> Tensor:
    # (groups x a x b, ...) -> (groups, a, b, ...) -> (groups, b, a, ...)
    return tensor.reshape(-1, a, b, *tensor.shape[1:]).transpose(1, 2).reshape(tensor.shape).contiguous()


def _make(step: Step, tensors: Mapping[str, Tensor]) -> Tensor:
    a, b, turned = _sizes(step)
    tensor = tensors[step.sources[0]]
    return _moved(tensor.t() if turned else tensor, a, b)


def _undo(step: Step, tensor: Tensor) -> tuple[Part, ...]:
    a, b, turned = _sizes(step)
    rows = _moved(tensor, b, a)
    return (Part(step.sources[0], rows.t().contiguous() if turned else rows),)


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
