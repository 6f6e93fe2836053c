"""Whether a tensor is as an initialiser made it, and how surely: by last bits, edge, or spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from inspector.health.distributions import ROUNDING, distance_scaled, has_spread, stored_as, within_edge
from inspector.health.generator import (
    in_normal_pairs,
    in_redrawn_pairs,
    of_truncated_uniform,
    on_normal_radii,
    on_uniform_lattice,
    share_on_uniform_lattice,
)
from inspector.health.initialisers import Family, Initialiser, initialisers_of
from inspector.health.subject import Examined, Subject
from inspector.health.thresholds import Thresholds
from inspector.weights.medians import median
from inspector.weights.report import TensorStatistics
from inspector.weights.rows import row_largest

Stretches = Sequence[NDArray[np.float32]]


class Proof(StrEnum):
    """By what a tensor was recognised, the surest first. LATTICE: what torch's generator makes, bit for bit. SCALED:
    the same but for a factor that all its numbers share, as weight decay is. EDGE: the hard edge of a uniform
    distribution. SPREAD: mean, deviation and shape, which short training leaves as they are."""

    LATTICE = "lattice"
    SCALED = "scaled lattice"
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
# Before a tensor is said to be as it was, all of it is read, in pieces: a batch moves a few rows of an embedding. Of
# one with more elements only so many stretches.
_WHOLE, _PIECE, _STRETCHES = 1 << 26, 1 << 20, 64
# A larger share on the lattice is no chance: the other numbers moved.
_PARTLY = 0.3


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
    if drawn is not None:
        whole = t.numel <= sum(map(len, stretches)) or _holds_throughout(subject, one, t, drawn)
        return drawn if whole else replace(drawn, standing=Standing.UNSURE)
    shaped = by_shape(t, _shaped_like(t, candidates, limits), known=bool(stretches))
    return unless_partly(shaped, stretches)


def _holds_throughout(subject: Subject, one: Examined, t: TensorStatistics, drawn: Freshness) -> bool:
    """Whether every element is what some of them are."""
    of = drawn.initialiser
    for piece in subject.pieces(one, _PIECE) if t.numel <= _WHOLE else subject.stretches(one, most=_STRETCHES):
        run = (piece,)
        if of is None or not len(piece):
            return False
        if of.family is Family.UNIFORM:
            holds = on_uniform_lattice(run, of.scale, fewest=0)
        else:
            holds = in_normal_pairs(run, fewest=0) and (
                drawn.proof is not Proof.LATTICE or on_normal_radii(run, of.scale, fewest=0)
            )
            holds = holds or (of.family is not Family.NORMAL and in_redrawn_pairs(run, cut_of(of), fewest=0))
            holds = holds or of_truncated_uniform(run, of.scale, cut_of(of), fewest=0)
        if not holds:
            return False
    return True


def unless_partly(shaped: Freshness, stretches: Stretches) -> Freshness:
    """Nothing is claimed of a tensor of which a part is on the lattice still: the rest moved."""
    of = shaped.initialiser
    claimed = shaped.standing in (Standing.FRESH, Standing.LIKELY)
    uniform = claimed and of is not None and of.family is Family.UNIFORM
    if of is not None and uniform and share_on_uniform_lattice(stretches, of.scale) > _PARTLY:
        return replace(shaped, standing=Standing.UNSURE)
    return shaped


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
) -> Freshness | None:
    if not stretches:
        return None
    for of in candidates:
        if of.family is Family.UNIFORM and within_edge(t, of.scale) and on_uniform_lattice(stretches, of.scale):
            return by_lattice(of)
    # One large element among many: the stretches did not meet it.
    if max(abs(t.minimum), abs(t.maximum)) > 8 * t.std:
        return None
    named = [of for of in candidates if of.family is not Family.UNIFORM and has_spread(t, of, limits)]
    normal = drawn_normal(t, named, stretches)
    if normal is not None:
        return normal
    for of in named:
        if of_truncated_uniform(stretches, of.scale, cut_of(of)):
            return by_lattice(of)
    return None


def drawn_normal(t: TensorStatistics, named: Sequence[Initialiser], stretches: Stretches) -> Freshness | None:
    """By what normal_ and today's trunc_normal_ make. named: those whose spread its numbers have."""
    if in_normal_pairs(stretches):
        for of in named:
            if of.family is Family.NORMAL and on_normal_radii(stretches, of.scale):
                return by_lattice(of)
        return but_for_a_factor(t, named)
    for of in named:
        if of.family is Family.TRUNCATED and in_redrawn_pairs(stretches, cut_of(of)):
            return by_lattice(of)
    return None


def but_for_a_factor(t: TensorStatistics, named: Sequence[Initialiser]) -> Freshness:
    """Of normal numbers that torch's generator made, of whichever deviation."""
    of = named[0] if named else normal_numbers(t)
    return Freshness(standing=Standing.FRESH, initialiser=of, proof=Proof.SCALED)


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
