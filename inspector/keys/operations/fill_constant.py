"""A buffer that the file lacks and that the target's own code sets: the means and deviations of pictures' colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inspector.checkpoint.raw_tensor import RawTensor, computed_tensor
from inspector.keys.operations.entry import Operation, argument_of
from inspector.keys.report import Step, StepKind


def numbers_of(held: str) -> tuple[float, ...]:
    """The numbers of "1.0,2.5". Raises ValueError where that is no list of numbers."""
    return tuple(float(number) for number in held.split(","))


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return computed_tensor(np.array(numbers_of(argument_of(step)), dtype=np.float32).reshape(step.shape or ()))


def _lines(steps: Sequence[Step]) -> list[str]:
    return [
        f"state[{step.target!r}] = torch.tensor({list(numbers_of(argument_of(step)))!r}).reshape({step.shape!r})"
        for step in steps
    ]


OPERATION = Operation(
    id="fill-constant", kinds=(StepKind.FILL,), way="constant", says="set {}", make=_make, lines=_lines
)
