"""Several tensors below each other in one: query, key and value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from inspector.keys.operations.entry import Moment, Operation, Part
from inspector.keys.report import Step, StepKind

if TYPE_CHECKING:
    from torch import Tensor


def _make(step: Step, tensors: Mapping[str, Tensor]) -> Tensor:
    import torch

    return torch.cat([tensors[name] for name in step.sources])


def _undo(step: Step, tensor: Tensor) -> tuple[Part, ...]:
    return tuple(map(Part, step.sources, tensor.chunk(len(step.sources))))


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        parts = ", ".join(f"state[{name!r}]" for name in step.sources)
        lines.append(f"made[{step.target!r}] = torch.cat([{parts}])")
    return lines


OPERATION = Operation(
    id="merge",
    kinds=(StepKind.MERGE,),
    says="join {} and what goes with it",
    moment=Moment.FILE,
    make=_make,
    undo=_undo,
    lines=_lines,
)
