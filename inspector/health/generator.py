"""Whether float32 numbers are still those that torch's random generator made on the CPU, to the last bit.

The generator draws 24 random bits per number, and what is made of them can be undone:

- uniform_(-b, b) is k * 2b / 2^24 - b for a whole k. Near zero float32 is finer than that lattice, so that numbers
  which moved by as little as a part in a million lie beside it.
- normal_ makes pairs that stand eight apart in blocks of 16 by the method of Box and Muller (1958), r cos t and r sin t
  with t = 2 pi k / 2^24. Their angle is a whole k, whatever the standard deviation; numbers that moved have any angle.
  Weight decay alone, which scales all of them alike, is not seen.
- trunc_normal_ of torch before 2.9 is erfinv of uniform numbers.

So one step of any optimizer is seen, where a comparison of distributions is blind for thousands. It proves in one
direction only: numbers drawn on a GPU, by numpy or by JAX are not on these lattices, nor are those rounded to 16 bits.
Zero is on every lattice, and tells nothing: pruning puts there the small numbers, which are those that tell.
Sources: aten/src/ATen/core/TransformationHelper.h (uniform_real), ATen/native/cpu/DistributionTemplates.h
(normal_fill_16), torch/nn/init.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float32]
Float = TypeVar("Float", np.float32, np.float64)

STEPS = 1 << 24
# Fewest informative numbers. Chance passes the mean over 16 once in 1,000, and 8 on the lattice once in 65,000.
FEWEST = 16
FEWEST_ON_LATTICE = 8


def on_uniform_lattice(stretches: Sequence[Values], bound: float) -> bool:
    """Whether every number near zero is one that uniform_(-bound, bound) can make."""
    b = np.float32(bound)
    width = float(b - -b)
    informative = 0
    for values in stretches:
        near = _informative(values, float(b) / 8).astype(np.float64)
        informative += len(near)
        apart = from_whole((near + float(b)) / width * STEPS) * width / STEPS
        # With a fused multiply-add only the result is rounded; without, the product before it as well, and then all
        # numbers are multiples of its last bit, half the last bit of the bound.
        fused = bool(np.all(apart <= np.spacing(np.abs(near).astype(np.float32)).astype(np.float64) * 0.5001))
        last_bit = float(np.spacing(b)) / 2
        plain = bool(np.all(from_whole(near / last_bit) == 0)) and bool(np.all(apart <= last_bit * 1.01))
        if not (fused or plain):
            return False
    return informative >= FEWEST_ON_LATTICE


def in_normal_pairs(stretches: Sequence[Values]) -> bool:
    """Whether the numbers are pairs of normal_, with any standard deviation. Stretches begin at multiples of 16."""
    informative = 0
    for values in stretches:
        blocks = values[: len(values) // 16 * 16].astype(np.float64).reshape(-1, 2, 8)
        angle = np.arctan2(blocks[:, 1], blocks[:, 0])
        # Beyond 1 radian float32 rounds the angle too coarsely before its cosine is taken.
        angle = angle[(angle > 0.01) & (angle < 1)]
        informative += len(angle)
        # Fresh ones are 0.08 away from a whole number in the mean (0.11 where trunc_normal_ drew one of two again),
        # any others 0.25, with a standard error of 0.144 / sqrt(n).
        if len(angle) >= FEWEST and float(np.mean(from_whole(angle / (2 * math.pi) * STEPS))) > 0.14:
            return False
    return informative >= FEWEST


def of_truncated_uniform(stretches: Sequence[Values], std: float, cut: float) -> bool:
    """Whether the numbers are trunc_normal_(std=std, a=-cut, b=cut) of older torch; cut in standard deviations."""
    low = np.float32(math.erf(-cut / math.sqrt(2)))
    width = float(-low - low)
    informative = 0
    for values in stretches:
        z = values.astype(np.float64) / (std * math.sqrt(2))
        near = erf_near_zero(_informative(z, 0.1))
        informative += len(near)
        if len(near) >= FEWEST and float(np.mean(from_whole((near - float(low)) / width * STEPS))) > 0.1:
            return False
    return informative >= FEWEST


def _informative(values: NDArray[Float], below: float) -> NDArray[Float]:
    """Those near zero, without zeros."""
    found: NDArray[Float] = values[(np.abs(values) < below) & (values != 0)]
    return found


def from_whole(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far each is from the nearest whole number: 0 to 0.5."""
    return np.abs(numbers - np.round(numbers))


def erf_near_zero(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """erf for |z| <= 0.1 by its series, right to 1e-13."""
    square = z * z
    series = 1 - square / 3 + square**2 / 10 - square**3 / 42 + square**4 / 216 - square**5 / 1320
    return np.asarray(2 / math.sqrt(math.pi) * z * series, np.float64)
