"""What an operation is: how one kind of step makes its tensor, how that is undone to prove it, and how Python says it.

Importing an operation imports no torch, and most of them do without it: numbers are moved as bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.report import Step, StepKind


class Moment(StrEnum):
    """When the exported code does it. FILE: under the file's names, into `made`. TARGET: under the target's names, in
    `state`. MODEL: once there is a `model`.
    """

    FILE = "file"
    TARGET = "target"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Part:
    """What one tensor of the file must hold for a step to have made its tensor. rows: only these of it, None for all.

    among: only these rows, in this order, where they are no run. turned: rows of it with the last two axes exchanged.
    source None: no tensor of the file holds this part, and it must be zero.
    """

    source: str | None
    tensor: RawTensor
    rows: tuple[int, int] | None = None
    among: tuple[int, ...] | None = None
    turned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One entry of `OPERATIONS`: what a step of these kinds, with this first word in its `value`, does.

    says: for the preview, with {} for the tensors. make: the tensor, from the step's sources by name; None where there
    is none to make (DROP). undo: the inverse, one part per source, up to the shape; None where numbers are computed.
    lines: the same in Python, for all steps of one plan together. check: why the tensors are not what the step rests
    on, "" when they are; only values tell, so it is asked when the plan is applied. otherwise: what to do then.
    by_torch: its numbers are worked out by torch's own functions, whose last digits nothing else gives.
    """

    id: str
    kinds: tuple[StepKind, ...]
    says: str
    way: str = ""
    moment: Moment = Moment.TARGET
    make: Callable[[Step, Mapping[str, RawTensor]], RawTensor] | None = None
    undo: Callable[[Step, RawTensor], tuple[Part, ...]] | None = None
    lines: Callable[[Sequence[Step]], list[str]] | None = None
    check: Callable[[Step, Mapping[str, RawTensor]], str] | None = None
    otherwise: str = ""
    by_torch: bool = False


def whole(step: Step, tensor: RawTensor) -> tuple[Part, ...]:
    """The inverse of what changes no number and no order: the one source holds just this."""
    return (Part(step.sources[0], tensor),)


def in_parts(tensor: RawTensor, count: int) -> tuple[RawTensor, ...]:
    """Views of so many equal runs of rows."""
    size = -(-tensor.shape[0] // count)
    return tuple(tensor.rows(at * size, (at + 1) * size) for at in range(count))


def argument_of(step: Step) -> str:
    """What stands behind the first word of a step's value: '1' of 'resize-grid:1'."""
    return step.value.partition(":")[2]
