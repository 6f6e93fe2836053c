"""A counter that starts at zero. Only counters are filled so, and those are int64 in torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inspector.checkpoint.raw_tensor import RawTensor, computed_tensor
from inspector.keys.operations.entry import Operation
from inspector.keys.report import Step, StepKind


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return computed_tensor(np.zeros(step.shape or (), np.int64))


def _lines(steps: Sequence[Step]) -> list[str]:
    ends = {(step.target or "").rpartition(".")[2] for step in steps}
    if len(ends) == 1 and all(step.shape in ((), None) and "." in (step.target or "") for step in steps):
        end = "." + ends.pop()
        return [
            "for key in model.state_dict():",
            f"    if key.endswith({end!r}):",
            "        state.setdefault(key, torch.tensor(0))",
        ]
    return [f"state[{step.target!r}] = torch.zeros({step.shape or ()!r}, dtype=torch.int64)" for step in steps]


OPERATION = Operation(id="fill-zero", kinds=(StepKind.FILL,), way="zero", says="fill in {}", make=_make, lines=_lines)
