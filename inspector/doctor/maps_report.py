"""What one module gave, or was given, in one pass: a picture for each channel, with its range.

No torch here: workers hand this to pages, and the command line draws it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.doctor.maps_asked import Order, Side
from inspector.doctor.report import Statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """How a tensor is read.

    layout: "NCHW", "NHWC", "NLC" (tokens that lie as a grid), "NCL" (a line for each channel). grid: (height, width),
    of lines (1, L). prefix_tokens: before the patches. because: what tells so.
    """

    layout: str
    grid: tuple[int, int]
    because: str
    prefix_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureMaps:
    """The first sample of one tensor, channel by channel.

    target, input_from, training: of the pass. path, kind, time, side, tensor: which it is; calls: of this module in the
    pass; tensors: on this side. shape, dtype: of the whole tensor, batch included. channels: the values of each, by
    number. low, high: the finite range of all channels together, None where nothing is finite. order, shown: the
    numbers of those that raw has, in its order. raw: (shown, h, w) float32 as drawn. drawn: (h, w) of it, smaller than
    the grid where cells were averaged.
    """

    target: str
    input_from: str
    training: bool
    path: str
    kind: str
    time: int
    calls: int
    side: Side
    tensor: int
    tensors: int
    shape: tuple[int, ...]
    dtype: str
    axes: Axes
    channels: tuple[Statistics, ...]
    low: float | None
    high: float | None
    order: Order
    shown: tuple[int, ...]
    drawn: tuple[int, int]
    raw: NDArray[np.float32]

    @property
    def zero(self) -> tuple[int, ...]:
        """Numbers of the channels that are nothing but zeros."""
        return tuple(n for n, one in enumerate(self.channels) if one.constant and one.minimum == 0)

    @property
    def constant(self) -> tuple[int, ...]:
        """Of those that are one finite number everywhere, which is not zero."""
        return tuple(n for n, one in enumerate(self.channels) if one.constant and one.minimum not in (0, None))

    @property
    def not_finite(self) -> tuple[int, ...]:
        """Of those with a NaN or an infinity."""
        return tuple(n for n, one in enumerate(self.channels) if one.nans + one.infinities + one.negative_infinities)
