"""The biases of query and value with zeros between them for the key, which has none: BEiT's attention as one layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor, join, zeros_like
from inspector.keys.operations.entry import Moment, Operation, Part, in_parts
from inspector.keys.report import Step, StepKind


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    query, value = (tensors[name] for name in step.sources)
    return join([query, zeros_like(query), value])


def _undo(step: Step, tensor: RawTensor) -> tuple[Part, ...]:
    query, key, value = in_parts(tensor, 3)
    return (Part(step.sources[0], query), Part(None, key), Part(step.sources[1], value))


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        query, value = (f"state[{name!r}]" for name in step.sources)
        lines.append(f"made[{step.target!r}] = torch.cat([{query}, torch.zeros_like({query}), {value}])")
    return lines


OPERATION = Operation(
    id="merge-bias",
    kinds=(StepKind.MERGE,),
    way="zeros-between",
    says="join {} and what goes with it, zeros between",
    moment=Moment.FILE,
    make=_make,
    undo=_undo,
    lines=_lines,
)
