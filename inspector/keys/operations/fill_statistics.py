"""A batch norm's statistics as a new layer has them: mean 0, variance 1, in float32 as torch makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inspector.checkpoint.raw_tensor import RawTensor, computed_tensor
from inspector.keys.operations.entry import Operation
from inspector.keys.report import Step, StepKind


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return computed_tensor(np.full(step.shape or (), float(step.value.partition(":")[2]), np.float32))


def _lines(steps: Sequence[Step]) -> list[str]:
    return [f"state[{s.target!r}] = torch.full({s.shape!r}, {float(s.value.partition(':')[2])})" for s in steps]


OPERATION = Operation(
    id="fill-statistics", kinds=(StepKind.FILL,), way="statistics", says="fill in {}", make=_make, lines=_lines
)
