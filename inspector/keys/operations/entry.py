"""What an operation is: how one kind of step makes its tensor, how that is undone to prove it, and how Python says it.

Importing an operation imports no torch: the lines of code are written where nothing has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from inspector.keys.report import Step, StepKind

if TYPE_CHECKING:
    from torch import Tensor


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

    source None: no tensor of the file holds this part, and it must be zero.
    """

    source: str | None
    tensor: Tensor
    rows: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One entry of `OPERATIONS`: what a step of these kinds, with this first word in its `value`, does.

    says: for the preview, with {} for the tensors. make: the tensor, from the step's sources by name; None where there
    is none to make (DROP). undo: the inverse, one part per source, up to the shape; None where numbers are computed.
    lines: the same in Python, for all steps of one plan together. check: why the tensors are not what the step rests
    on, "" when they are; only values tell, so it is asked when the plan is applied. otherwise: what to do then.
    """

    id: str
    kinds: tuple[StepKind, ...]
    says: str
    way: str = ""
    moment: Moment = Moment.TARGET
    make: Callable[[Step, Mapping[str, Tensor]], Tensor] | None = None
    undo: Callable[[Step, Tensor], tuple[Part, ...]] | None = None
    lines: Callable[[Sequence[Step]], list[str]] | None = None
    check: Callable[[Step, Mapping[str, Tensor]], str] | None = None
    otherwise: str = ""


def whole(step: Step, tensor: Tensor) -> tuple[Part, ...]:
    """The inverse of what changes no number and no order: the one source holds just this."""
    return (Part(step.sources[0], tensor),)


def argument_of(step: Step) -> str:
    """What stands behind the first word of a step's value: '1' of 'resize-grid:1'."""
    return step.value.partition(":")[2]
