"""Whether float32 numbers are still those that torch's random generator made on the CPU, to the last bit.

The generator draws 24 random bits per number, and what is made of them can be undone:

- uniform_(-b, b) is k * 2b / 2^24 - b for a whole k. Near zero float32 is finer than that lattice, so that numbers
  which moved by as little as a part in a million lie beside it.
- normal_ makes pairs that stand eight apart in blocks of 16 by the method of Box and Muller (1958), r cos t and r sin t
  with t = 2 pi k / 2^24. Their angle is a whole k, whatever the standard deviation; numbers that moved have any angle.
  Weight decay alone, which scales all of them alike, leaves the angles; it is seen in the radii, where the deviation
  is known: exp(-r^2 / 2) is a whole k / 2^24 as well.
- trunc_normal_ of torch before 2.9 is erfinv of uniform numbers.

Of pairs that moved, a quarter lie further from a whole number than rounding takes any: a few rows that moved among
thousands that did not (an embedding, of which a batch reaches some) are seen by the worst of all, not by the mean.

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
FEWEST_RADII = 6
# Rounding takes angles below SHARP radians, and radii with u r^2 below ROUND, no further than 0.31 from a whole
# number (of 8 million numbers each of four deviations). Of what moved, 28 % lie beyond.
FURTHEST = 0.36
SHARP = 0.5
ROUND = 0.1
BEYOND = 1 - 2 * FURTHEST
# Fresh pairs are 0.08 away from a whole number in the mean (0.11 where trunc_normal_ drew one of two again), any others
# 0.25, with a standard error of 0.144 / sqrt(n).
PAIRS_APART = 0.14


def on_uniform_lattice(stretches: Sequence[Values], bound: float, *, fewest: int = FEWEST_ON_LATTICE) -> bool:
    """Whether every number near zero is one that uniform_(-bound, bound) can make."""
    informative = 0
    for values in stretches:
        fused, plain = _on_lattice(values, bound)
        informative += len(fused)
        if not (fused.all() or plain.all()):
            return False
    return informative >= fewest


def share_on_uniform_lattice(stretches: Sequence[Values], bound: float) -> float:
    """Of the numbers near zero, 0.0 where there are none. Chance puts one in ten there."""
    found = [_on_lattice(values, bound) for values in stretches]
    count = sum(len(fused) for fused, _ in found)
    return sum(max(int(fused.sum()), int(plain.sum())) for fused, plain in found) / count if count else 0.0


def _on_lattice(values: Values, bound: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of each number near zero: whether it is made with a fused multiply-add, or without.

    With one, only the result is rounded; without, the product before it as well, and then all numbers are multiples of
    its last bit, half the last bit of the bound.
    """
    b = np.float32(bound)
    width = float(b - -b)
    near = _informative(values, float(b) / 8).astype(np.float64)
    apart = from_whole((near + float(b)) / width * STEPS) * width / STEPS
    # The least of all lie closer to zero than float64 tells their place beside the bound.
    rounding = width * 2.0**-50
    fused = apart <= np.spacing(np.abs(near).astype(np.float32)).astype(np.float64) * 0.5001 + rounding
    last_bit = float(np.spacing(b)) / 2
    return fused, (from_whole(near / last_bit) == 0) & (apart <= last_bit * 1.01)


def in_normal_pairs(stretches: Sequence[Values], *, fewest: int = FEWEST) -> bool:
    """Whether all numbers are pairs of normal_, with any standard deviation. Stretches begin at multiples of 16."""
    informative = 0
    for values in stretches:
        angle, apart = pair_angles(values)
        informative += len(apart)
        if not _are_pairs(apart) or np.any(apart[angle < SHARP] > FURTHEST):
            return False
    return informative >= fewest


def in_redrawn_pairs(stretches: Sequence[Values], cut: float, *, fewest: int = FEWEST) -> bool:
    """Whether they are pairs but for those of which trunc_normal_ of torch from 2.9 on drew one again: what lay beyond
    cut standard deviations, and no more of them than that."""
    informative = beyond = sharp = 0
    for values in stretches:
        angle, apart = pair_angles(values)
        informative += len(apart)
        if not _are_pairs(apart):
            return False
        sharp += int(np.count_nonzero(angle < SHARP))
        beyond += int(np.count_nonzero(apart[angle < SHARP] > FURTHEST))
    expected = sharp * 2 * math.erfc(cut / math.sqrt(2)) * BEYOND
    return informative >= fewest and beyond <= expected + 3 * math.sqrt(expected) + 1


def on_normal_radii(stretches: Sequence[Values], std: float, *, fewest: int = FEWEST_RADII) -> bool:
    """Whether pairs of normal_(0, std) have its radii, which a common factor ends (weight decay: lr x decay)."""
    informative = 0
    for values in stretches:
        x, y = _pairs(values)
        square = (x * x + y * y) / float(np.float32(std)) ** 2
        even = np.exp(-square / 2)
        apart = from_whole(even[(x != 0) & (y != 0) & (even * square < ROUND)] * STEPS)
        informative += len(apart)
        if len(apart) and (float(np.max(apart)) > FURTHEST or (len(apart) >= fewest and float(np.mean(apart)) > 0.1)):
            return False
    return informative >= fewest


def pair_angles(values: Values) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(angles between 0.01 and 1 radian, how far each is from a whole step). Beyond, float32 rounds the angle too
    coarsely before its cosine is taken."""
    x, y = _pairs(values)
    angle = np.arctan2(y, x)
    angle = angle[(angle > 0.01) & (angle < 1)]
    return angle, from_whole(angle / (2 * math.pi) * STEPS)


def _pairs(values: Values) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # Of a tensor whose size is no multiple of 16 the last 16 numbers are drawn anew, over the end of the block before.
    whole = max(0, len(values) // 16 - 1) * 16
    blocks = values[:whole].astype(np.float64).reshape(-1, 2, 8)
    return blocks[:, 0], blocks[:, 1]


def _are_pairs(apart: NDArray[np.float64]) -> bool:
    """By their mean, where there are enough to tell."""
    return len(apart) < FEWEST or float(np.mean(apart)) <= PAIRS_APART


def of_truncated_uniform(stretches: Sequence[Values], std: float, cut: float, *, fewest: int = FEWEST) -> bool:
    """Whether the numbers are trunc_normal_(std=std, a=-cut, b=cut) of older torch; cut in standard deviations."""
    low = np.float32(math.erf(-cut / math.sqrt(2)))
    width = float(-low - low)
    informative = 0
    for values in stretches:
        z = values.astype(np.float64) / (std * math.sqrt(2))
        near = erf_near_zero(_informative(z, 0.1))
        informative += len(near)
        apart = from_whole((near - float(low)) / width * STEPS)
        if len(near) and (float(np.max(apart)) > FURTHEST or (len(near) >= FEWEST and float(np.mean(apart)) > 0.1)):
            return False
    return informative >= fewest


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
