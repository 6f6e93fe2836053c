"""Position embeddings without one of the tokens that stand before the grid. The argument is its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor, join
from inspector.keys.operations.entry import Operation, argument_of
from inspector.keys.report import Step, StepKind


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    held, at = tensors[step.sources[0]], int(argument_of(step))
    return join([held.columns(0, at), held.columns(at + 1, held.shape[1])], axis=1)


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        at = int(argument_of(step))
        lines += [
            f"held = state[{step.target!r}]",
            f"state[{step.target!r}] = torch.cat([held[:, :{at}], held[:, {at + 1} :]], dim=1)",
        ]
    return lines


OPERATION = Operation(
    id="drop-tokens", kinds=(StepKind.ADAPT,), way="drop-token", says="take a token from {}", make=_make, lines=_lines
)
