"""A batch norm's statistics as a new layer has them: mean 0, variance 1, in float32 as torch makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from inspector.keys.operations.entry import Operation
from inspector.keys.report import Step, StepKind

if TYPE_CHECKING:
    from torch import Tensor


def _make(step: Step, tensors: Mapping[str, Tensor]) -> Tensor:
    import torch

    return torch.full(step.shape or (), float(step.value.partition(":")[2]), dtype=torch.float32)


def _lines(steps: Sequence[Step]) -> list[str]:
    return [f"state[{s.target!r}] = torch.full({s.shape!r}, {float(s.value.partition(':')[2])})" for s in steps]


OPERATION = Operation(
    id="fill-statistics", kinds=(StepKind.FILL,), way="statistics", says="fill in {}", make=_make, lines=_lines
)
