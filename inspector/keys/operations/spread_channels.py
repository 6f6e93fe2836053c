"""A first convolution for another number of input channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Operation
from inspector.keys.report import Step, StepKind


def spread_channels(weight: RawTensor, channels: int) -> RawTensor:
    """A first convolution's weight (out, in, *kernel) for another number of input channels, in its own dtype.

    Each new channel gets the sum over the old ones divided by the new count: a picture with equal channels gets the old
    answer. Computed in float64.
    """
    held = weight.numbers
    total = np.zeros((held.shape[0], *held.shape[2:]))
    # One after the other: numpy's own sum takes another order, and other last digits, by how numbers lie.
    for channel in range(held.shape[1]):
        total += held[:, channel]
    return weight.with_numbers(np.repeat((total / channels)[:, None], channels, axis=1))


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return spread_channels(tensors[step.sources[0]], (step.shape or (0, 0))[1])


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        channels = (step.shape or (0, 0))[1]
        rest = ", -1" * (len(step.shape or ()) - 2)
        lines += [
            f"weight = state[{step.target!r}]",
            f"total = weight.double().sum(dim=1, keepdim=True) / {channels}",
            f"state[{step.target!r}] = total.expand(-1, {channels}{rest}).to(weight.dtype).contiguous()",
        ]
    return lines


OPERATION = Operation(
    id="spread-channels", kinds=(StepKind.ADAPT,), way="spread-channels", says="adapt {}", make=_make, lines=_lines
)
