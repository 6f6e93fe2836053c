"""A head's tensor that begins at zero, in the type that the file's head has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Operation, argument_of
from inspector.keys.report import Step, StepKind


def value_of(dtype: str) -> str:
    """The `value` of a step that fills in zeros of this type."""
    return f"zeros:{dtype}"


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    dtype = argument_of(step)
    return RawTensor(dtype, np.zeros(step.shape or (), DTYPES[dtype].raw))


def _lines(steps: Sequence[Step]) -> list[str]:
    return [
        "# These begin at zero.",
        *(f"state[{s.target!r}] = torch.zeros({s.shape!r}, dtype=torch.{argument_of(s)})" for s in steps),
    ]


OPERATION = Operation(
    id="fill-zeros", kinds=(StepKind.FILL,), way="zeros", says="begin {} at zero", make=_make, lines=_lines
)
