"""Several tensors below each other in one: query, key and value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor, join
from inspector.keys.operations.entry import Moment, Operation, Part, in_parts
from inspector.keys.report import Step, StepKind


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return join([tensors[name] for name in step.sources])


def _undo(step: Step, tensor: RawTensor) -> tuple[Part, ...]:
    return tuple(map(Part, step.sources, in_parts(tensor, len(step.sources))))


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
