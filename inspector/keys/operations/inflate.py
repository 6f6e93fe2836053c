"""A kernel over pictures as one over short films: the same in every frame, divided by their number (I3D)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Operation
from inspector.keys.report import Step, StepKind


def inflate(weight: RawTensor, frames: int) -> RawTensor:
    """A weight (out, in, height, width) as (out, in, frames, height, width), in its own dtype.

    A film of equal frames gets the answer that the picture got (Carreira 2017, section 2.4.1). Computed in float64.
    """
    held = weight.numbers.astype(np.float64) / frames
    return weight.with_numbers(np.repeat(held[:, :, None], frames, axis=2))


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return inflate(tensors[step.sources[0]], (step.shape or (0, 0, 1))[2])


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        frames = (step.shape or (0, 0, 1))[2]
        lines += [
            f"weight = state[{step.target!r}]",
            f"film = (weight.double() / {frames})[:, :, None].expand(-1, -1, {frames}, -1, -1)",
            f"state[{step.target!r}] = film.to(weight.dtype).contiguous()",
        ]
    return lines


OPERATION = Operation(id="inflate", kinds=(StepKind.ADAPT,), way="inflate", says="inflate {}", make=_make, lines=_lines)
