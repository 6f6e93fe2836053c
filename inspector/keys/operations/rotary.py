"""Rows of a query or key put from rotary pairs that stand side by side into halves, or back.

Source: transformers' converters for Llama, `w.view(heads, size // 2, 2, in).transpose(1, 2)`. The argument is
"SIZE,halves" for what comes out in halves (Hugging Face), "SIZE,pairs" for the way back (Meta); SIZE: rows of one head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from inspector.keys.operations.entry import Operation, Part, argument_of
from inspector.keys.report import Step, StepKind

if TYPE_CHECKING:
    from torch import Tensor


def _inner(step: Step, *, back: bool = False) -> tuple[int, int]:
    """How one head's rows are laid out before: (size // 2, 2) for pairs, (2, size // 2) for halves."""
    size, _, way = argument_of(step).partition(",")
    pairs = (int(size) // 2, 2)
    return pairs if (way == "halves") is not back else pairs[::-1]


def _turn(tensor: Tensor, inner: tuple[int, int]) -> Tensor:
    # (heads x size, ...) -> (heads, a, b, ...) -> (heads, b, a, ...)
    return tensor.reshape(-1, *inner, *tensor.shape[1:]).transpose(1, 2).reshape(tensor.shape).contiguous()


def _make(step: Step, tensors: Mapping[str, Tensor]) -> Tensor:
    return _turn(tensors[step.sources[0]], _inner(step))


def _undo(step: Step, tensor: Tensor) -> tuple[Part, ...]:
    return (Part(step.sources[0], _turn(tensor, _inner(step, back=True))),)


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        a, b = _inner(step)
        lines += [
            f"rows = state[{step.target!r}]",
            f"rows = rows.reshape(-1, {a}, {b}, *rows.shape[1:]).transpose(1, 2).reshape(rows.shape)",
            f"state[{step.target!r}] = rows.contiguous()",
        ]
    return lines


OPERATION = Operation(
    id="rotary",
    kinds=(StepKind.PERMUTE,),
    way="rotary",
    says="reorder the rotary rows of {}",
    make=_make,
    undo=_undo,
    lines=_lines,
)
