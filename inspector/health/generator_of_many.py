"""`generator.py` of many small tensors of one shape at once: the same answers, without numpy being called some thirty
times for each.

values: (tensors, numel) float32, each row the only stretch of its tensor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.health import generator
from inspector.health.generator import (
    BEYOND,
    FEWEST,
    FEWEST_ON_LATTICE,
    FEWEST_RADII,
    FURTHEST,
    PAIRS_APART,
    ROUND,
    SHARP,
    STEPS,
    erf_near_zero,
    from_whole,
)

Values = NDArray[np.float32]
# Sums over the numbers of one tensor are rounded in another order here: so near to a limit each is asked by itself.
_NEAR = 1e-9
# exp(-s / 2) s is 0.104 at the one, 0.104 at the other, and more in between.
_INNER, _OUTER = 0.11, 8.9


def on_uniform_lattice(values: Values, bound: float) -> NDArray[np.bool_]:
    """(tensors,)"""
    b = np.float32(bound)
    width = float(b - -b)
    owner, near = _informative(values, float(b) / 8)
    apart = from_whole((near + float(b)) / width * STEPS) * width / STEPS
    fused = apart <= np.spacing(np.abs(near).astype(np.float32)).astype(np.float64) * 0.5001 + width * 2.0**-50
    last_bit = float(np.spacing(b)) / 2
    plain = (from_whole(near / last_bit) == 0) & (apart <= last_bit * 1.01)
    enough = _count(owner, values) >= FEWEST_ON_LATTICE
    found: NDArray[np.bool_] = enough & (_none(owner[~fused], values) | _none(owner[~plain], values))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Angles:
    """`generator.pair_angles` of all tensors, one behind the other.

    owner: whose each is. angle: in radians. apart: how far it is from a whole step. values: what they are of.
    """

    owner: NDArray[np.intp]
    angle: NDArray[np.float64]
    apart: NDArray[np.float64]
    values: Values


def pair_angles(values: Values) -> Angles:
    """Between 0.01 and 1 radian."""
    x, y = _pairs(values)
    # An angle between 0 and 1 has both coordinates above zero, and a tangent below 1.5575: six of seven arctangents are
    # spared.
    with np.errstate(over="ignore"):
        near = np.flatnonzero((x > 0) & (y > 0) & (y <= np.float32(1.56) * x))
    angle = np.arctan2(y[near].astype(np.float64), x[near].astype(np.float64))
    inside = (angle > 0.01) & (angle < 1)
    angle = angle[inside]
    owner = near[inside] // max(1, len(x) // max(1, len(values)))
    return Angles(owner=owner, angle=angle, apart=from_whole(angle / (2 * math.pi) * STEPS), values=values)


def in_normal_pairs(angles: Angles) -> NDArray[np.bool_]:
    """(tensors,)"""
    values, sharp = angles.values, angles.angle < SHARP
    found, unsure = _below(angles.owner, angles.apart, values, PAIRS_APART)
    found &= _none(angles.owner[sharp & (angles.apart > FURTHEST)], values)
    for place in unsure:
        found[place] = generator.in_normal_pairs([values[place]])
    return found


def in_redrawn_pairs(angles: Angles, cut: float) -> NDArray[np.bool_]:
    """(tensors,)"""
    values, sharp = angles.values, angles.angle < SHARP
    found, unsure = _below(angles.owner, angles.apart, values, PAIRS_APART)
    beyond = _count(angles.owner[sharp & (angles.apart > FURTHEST)], values)
    expected = _count(angles.owner[sharp], values) * 2 * math.erfc(cut / math.sqrt(2)) * BEYOND
    found &= beyond <= expected + 3 * np.sqrt(expected) + 1
    for place in unsure:
        found[place] = generator.in_redrawn_pairs([values[place]], cut)
    return found


def on_normal_radii(values: Values, std: float) -> NDArray[np.bool_]:
    """(tensors,)"""
    x, y = (one.astype(np.float64) for one in _pairs(values))
    square = (x * x + y * y) / float(np.float32(std)) ** 2
    # u r^2 is below ROUND nowhere between: the exponentials of nine pairs of ten are spared.
    told = np.flatnonzero(((square < _INNER) | (square > _OUTER)) & (x != 0) & (y != 0))
    even = np.exp(-square[told] / 2)
    small = even * square[told] < ROUND
    told, even = told[small], even[small]
    owner, apart = told // max(1, len(x) // max(1, len(values))), from_whole(even * STEPS)
    found, unsure = _below(owner, apart, values, 0.1, fewest=FEWEST_RADII)
    found &= _none(owner[apart > FURTHEST], values)
    for place in unsure:
        found[place] = generator.on_normal_radii([values[place]], std)
    return found


def _pairs(values: Values) -> tuple[Values, Values]:
    """As in `generator.py`, one tensor's behind the other's."""
    whole = max(0, values.shape[1] // 16 - 1) * 16
    blocks = values[:, :whole].reshape(len(values), -1, 2, 8) if whole else np.zeros((len(values), 0, 2, 8), np.float32)
    return blocks[:, :, 0].ravel(), blocks[:, :, 1].ravel()


def of_truncated_uniform(values: Values, std: float, cut: float) -> NDArray[np.bool_]:
    """(tensors,)"""
    low = np.float32(math.erf(-cut / math.sqrt(2)))
    width = float(-low - low)
    owner, z = _informative(values.astype(np.float64) / (std * math.sqrt(2)), 0.1)
    apart = from_whole((erf_near_zero(z) - float(low)) / width * STEPS)
    found, unsure = _below(owner, apart, values, 0.1)
    found &= _none(owner[apart > FURTHEST], values)
    for place in unsure:
        found[place] = generator.of_truncated_uniform([values[place]], std, cut)
    return found


def _informative(values: NDArray[np.floating], below: float) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """(whose, the numbers): those near zero, without zeros."""
    near = (np.abs(values) < below) & (values != 0)
    return np.nonzero(near)[0], values[near].astype(np.float64)


def _below(
    owner: NDArray[np.intp], apart: NDArray[np.float64], values: Values, limit: float, *, fewest: int = FEWEST
) -> tuple[NDArray[np.bool_], list[int]]:
    """Of which tensors there are enough numbers, and no more than that apart in the mean; and where rounding might
    decide it."""
    counts = _count(owner, values)
    mean = np.bincount(owner, weights=apart, minlength=len(values)) / np.maximum(counts, 1)
    enough = counts >= fewest
    return enough & (mean <= limit), np.flatnonzero(enough & (np.abs(mean - limit) < _NEAR)).tolist()


def _count(owner: NDArray[np.intp], values: Values) -> NDArray[np.intp]:
    counts: NDArray[np.intp] = np.bincount(owner, minlength=len(values))
    return counts


def _none(owner: NDArray[np.intp], values: Values) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = _count(owner, values) == 0
    return found
