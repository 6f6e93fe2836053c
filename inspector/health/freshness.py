"""Whether a tensor is as an initialiser made it, and how surely: by last bits, edge, or spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from inspector.health.distributions import ROUNDING, distance_scaled, has_spread, stored_as, within_edge
from inspector.health.generator import in_normal_pairs, of_truncated_uniform, on_uniform_lattice
from inspector.health.initialisers import Family, Initialiser, initialisers_of
from inspector.health.subject import Examined, Subject
from inspector.health.thresholds import Thresholds
from inspector.weights.medians import median
from inspector.weights.report import TensorStatistics
from inspector.weights.rows import row_largest

Stretches = Sequence[NDArray[np.float32]]


class Proof(StrEnum):
    """By what a tensor was recognised, the surest first. LATTICE: what torch's generator makes, bit for bit. EDGE: the
    hard edge of a uniform distribution. SPREAD: mean, deviation and shape, which short training leaves as they are."""

    LATTICE = "lattice"
    EDGE = "edge"
    SPREAD = "spread"


class Standing(StrEnum):
    """What becomes of it. LIKELY: a hint, no proof. UNSURE: its shape is an initialiser's still, and its last bits are
    not torch's generator's (drawn elsewhere, or trained a little), it is too small to tell, or its small numbers are
    zero (pruned)."""

    FRESH = "fresh"
    LIKELY = "likely"
    UNSURE = "unsure"
    MOVED = "moved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """initialiser, proof: None where none fits."""

    standing: Standing
    initialiser: Initialiser | None = None
    proof: Proof | None = None


MOVED = Freshness(standing=Standing.MOVED)
# Fewest elements of which the edge alone is believed: where the last bits speak against torch's generator, and where
# they were rounded away. One step of gentle training carries one element in some tens of thousands over it.
_EDGE_ALONE, _EDGE_ROUNDED = 1 << 16, 1 << 14
# And of which mean and spread are worth a hint: among a dozen candidates one fits small tensors by chance.
_SPREAD = 1 << 16
#: Neighbours among which different numbers are counted.
WINDOW = 64
# More zeros than so many times those to be expected, and one, are no chance. uniform_ makes one of 2^24 numbers zero.
_CHANCE_ZEROS = 10
_SMALLEST = {"float16": 2.0**-24, "float32": 2.0**-24}
# So many stretches are read of a tensor before it is said to be as it was.
_STRETCHES = 64


def freshness_of(subject: Subject, one: Examined, t: TensorStatistics) -> Freshness | None:
    """Of a weight of two or more dimensions; None where that cannot be told (few elements, one value, NaN)."""
    limits = subject.thresholds
    if stored_as(t) not in ROUNDING or t.numel < limits.few or t.finite != t.numel or t.minimum == t.maximum:
        return None
    candidates = initialisers_of(one.name, t.shape)
    read = subject.stretches(one)
    if _repeats(read):
        return None
    stretches = read if stored_as(t) == "float32" else ()
    drawn = _on_lattice(t, candidates, stretches, limits)
    if drawn is not None and t.numel > sum(map(len, stretches)):
        # Small steps move the smallest numbers only: more of them are asked.
        drawn = _on_lattice(t, (drawn,), subject.stretches(one, most=_STRETCHES), limits)
    if drawn is not None:
        return by_lattice(drawn)
    return by_shape(t, _shaped_like(t, candidates, limits), known=bool(stretches))


def by_lattice(drawn: Initialiser) -> Freshness:
    """Of what torch's generator made, bit for bit."""
    return Freshness(standing=Standing.FRESH, initialiser=drawn, proof=Proof.LATTICE)


def by_shape(t: TensorStatistics, shaped: tuple[Initialiser, Proof] | None, *, known: bool) -> Freshness:
    """By the initialiser whose shape its numbers have. known: its last bits are known, and are not torch's."""
    if shaped is None:
        return MOVED
    initialiser, proof = shaped
    if _is_sparse(t, initialiser):
        # Small weights were zeroed: what is left says as little of training as of none.
        return Freshness(standing=Standing.UNSURE, initialiser=initialiser, proof=proof)
    if proof is Proof.EDGE and t.numel >= (_EDGE_ALONE if known else _EDGE_ROUNDED):
        standing = Standing.FRESH
    else:
        hint = not known and (proof is Proof.EDGE or t.numel >= _SPREAD)
        standing = Standing.LIKELY if hint else Standing.UNSURE
    return Freshness(standing=standing, initialiser=initialiser, proof=proof)


def _is_sparse(t: TensorStatistics, of: Initialiser) -> bool:
    """Whether it holds more zeros than the initialiser makes, rows that are zero throughout (padding) apart."""
    rows = int(np.count_nonzero(row_largest(t.rows) == 0)) * t.rows.length if t.rows is not None else 0
    # Rounding takes what is below half of the type's smallest number to zero; no density is above 0.6 / std.
    smallest = _SMALLEST.get(stored_as(t), 0.0)
    return t.zero - rows > _CHANCE_ZEROS * (1 + t.numel * 0.6 * smallest / of.std)


def _repeats(stretches: Stretches) -> bool:
    """Whether neighbours take a few values over and over, as rows do that were quantised by a scale each: of 64 numbers
    of an initialiser 50 and more differ, rounded to bfloat16 too."""
    windows = [run[: len(run) // WINDOW * WINDOW].reshape(-1, WINDOW) for run in stretches]
    ordered = [np.sort(window, axis=1) for window in windows]
    counts = [np.count_nonzero(window[:, 1:] != window[:, :-1], axis=1) + 1 for window in ordered]
    every = np.concatenate(counts) if counts else np.zeros(0)
    return bool(len(every)) and median(every) <= WINDOW / 2


def _on_lattice(
    t: TensorStatistics, candidates: Sequence[Initialiser], stretches: Stretches, limits: Thresholds
) -> Initialiser | None:
    if not stretches:
        return None
    for of in candidates:
        if of.family is Family.UNIFORM and within_edge(t, of.scale) and on_uniform_lattice(stretches, of.scale):
            return of
    # One large element among many: the stretches did not meet it.
    if max(abs(t.minimum), abs(t.maximum)) > 8 * t.std:
        return None
    named = [of for of in candidates if of.family is not Family.UNIFORM and has_spread(t, of, limits)]
    if in_normal_pairs(stretches):
        return named[0] if named else normal_numbers(t)
    for of in named:
        if of_truncated_uniform(stretches, of.scale, cut_of(of)):
            return of
    return None


def normal_numbers(t: TensorStatistics) -> Initialiser:
    """What made normal numbers of a deviation that nobody is known for."""
    return Initialiser(family=Family.NORMAL, scale=t.std, says="normal numbers")


def cut_of(of: Initialiser) -> float:
    """Where trunc_normal_ may have cut, in standard deviations: its own ends are -2 and 2."""
    return 2.0 if of.family is Family.TRUNCATED else 2 / of.scale


def _shaped_like(
    t: TensorStatistics, candidates: Sequence[Initialiser], limits: Thresholds
) -> tuple[Initialiser, Proof] | None:
    for of in candidates:
        uniform = of.family is Family.UNIFORM
        if uniform and not within_edge(t, of.scale):
            continue
        if has_spread(t, of, limits) and distance_scaled(t, of) < limits.initial_ks:
            return of, Proof.EDGE if uniform else Proof.SPREAD
    return None
