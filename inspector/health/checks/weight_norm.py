"""Weights that are kept as a length and a direction, w = g v / |v| (Salimans and Kingma 2016, 1602.07868), and
directions that are zero: 0 / 0 is NaN.

Such a file loads only into a module that was wrapped the same way (torch.nn.utils.weight_norm and its parametrization).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import listed, shown
from inspector.health.subject import Examined, Subject
from inspector.units import counted, human_place

NO_DIRECTION = FindingKind(
    "weight-norm-without-direction",
    Severity.ERROR,
    "Directions of a weight norm are zero",
    explains=("dead-outputs",),
)
WEIGHT_NORM = FindingKind("weight-norm-not-folded", Severity.INFO, "Weights kept as length and direction")

# The sum of squares that float32 rounds to zero: half its smallest number.
_NOTHING = 7e-46


def _find(subject: Subject) -> Iterator[Finding]:
    pairs = [*_pairs(subject)]
    zero = [
        (direction.name, length.tensor.shape, places)
        for length, direction in pairs
        if len(places := _zero(subject, length, direction))
    ]
    if zero:
        name, shape, places = zero[0]
        names = [each for each, *_ in zero]
        count = sum(len(each) for *_, each in zero)
        yield NO_DIRECTION.found(
            f"{counted(count, 'direction')} of weight norms {'is' if count == 1 else 'are'} zero, so that their "
            f"weights are 0 / 0, NaN: in {listed(names)}, the first at {human_place(int(places[0]), shape)} of "
            f"{shown(name)}.",
            subjects=names,
            evidence=(("directions", count), ("weights", len(names)), ("first", int(places[0]))),
            remedy="The first forward pass answers NaN. Pruning such a layer takes its lengths (g), never its "
            "directions (v): restore these rows, or fill them with small random numbers and set their lengths to 0.",
        )
    if pairs:
        names = [length.name for length, _ in pairs]
        yield WEIGHT_NORM.found(
            f"{counted(len(names), 'weight')} kept as length and direction (weight norm): {listed(names)}.",
            subjects=names,
            evidence=(("weights", len(names)),),
            remedy="Call torch.nn.utils.remove_weight_norm, or parametrize.remove_parametrizations, before saving for "
            "use: weight = g * v / ||v||. To train on, keep it.",
        )


def _pairs(subject: Subject) -> Iterator[tuple[Examined, Examined]]:
    """(length, direction)"""
    for one in subject.called(lambda last: last.endswith("_g") or last == "original0"):
        last = f"{one.last[:-2]}_v" if one.last.endswith("_g") else "original1" if one.last == "original0" else ""
        direction = _direction(subject, one, last) if last else None
        if direction is not None:
            yield one, direction


def _direction(subject: Subject, length: Examined, last: str) -> Examined | None:
    """The direction beside a length: as many dimensions, of which the length keeps one."""
    found = subject.beside(length, last)
    if found is None or found.tensor.numel < length.tensor.numel:
        return None
    mine, its = length.tensor.shape, found.tensor.shape
    fits = len(mine) == len(its) and all(a in (1, b) for a, b in zip(mine, its, strict=True))
    return found if not mine or fits else None


def _zero(subject: Subject, length: Examined, direction: Examined) -> NDArray[np.intp]:
    """Places, flat among the lengths, of directions that are zero. One that is no float32 any more is."""
    t = direction.statistics
    array = subject.array(direction) if t is not None and t.finite == t.numel and t.numel else None
    if array is None:
        return np.zeros(0, np.intp)
    kept = length.tensor.shape or (1,) * array.ndim
    over = tuple(axis for axis, size in enumerate(kept) if size == 1)
    return np.flatnonzero(np.square(array).sum(axis=over).ravel() < _NOTHING)


CHECK = Check(kinds=(NO_DIRECTION, WEIGHT_NORM), find=_find)
