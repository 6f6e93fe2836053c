"""The vectors nearest to one: exactly, by every distance, some rows at a time."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from inspector.errors import UsageError
from inspector.projector.report import Neighbour, Points

_ROWS = 4096


class Metric(StrEnum):
    """How far two vectors are apart: 1 - cosine of their angle, or the length of their difference."""

    COSINE = "cosine"
    EUCLIDEAN = "euclidean"


def nearest(points: Points, number: int, *, metric: Metric = Metric.COSINE, count: int = 10) -> tuple[Neighbour, ...]:
    """Those nearest to the row of that number, itself left out, nearest first; equal ones by their numbers.

    By cosine a vector of zeros is near to nothing: it is left out, and asking for its neighbours is a UsageError, as is
    a number that is not among the points.
    """
    place = int(np.searchsorted(points.numbers, number))
    if place >= len(points.numbers) or points.numbers[place] != number:
        raise UsageError(f"{points.noun.capitalize()} {number:,} of {points.name} is not on the map.")
    distances = _distances(points.values, place, metric)
    if metric is Metric.COSINE and np.isnan(distances[place]):
        raise UsageError(
            f"{points.noun.capitalize()} {number:,} is zero: it has no direction, so nothing is near it by cosine.",
            hint="Ask by Euclidean distance.",
        )
    distances[place] = np.nan
    order = np.argsort(distances, kind="stable")[:count]
    return tuple(
        Neighbour(place=int(at), number=int(points.numbers[at]), distance=float(distances[at]))
        for at in order
        if not np.isnan(distances[at])
    )


def _distances(values: NDArray[np.floating], place: int, metric: Metric) -> NDArray[np.float64]:
    """(n,) to the one at that place; NaN where there is no direction."""
    largest = float(np.abs(values).max(initial=0.0))
    # Squares of what float64 just holds would overflow.
    scale = largest if largest > 1e100 or 0 < largest < 1e-100 else 1.0
    one = values[place].astype(np.float64) / scale
    made = np.empty(len(values))
    for at in range(0, len(values), _ROWS):
        part = values[at : at + _ROWS].astype(np.float64) / scale
        if metric is Metric.EUCLIDEAN:
            # Of the differences: |a|^2 + |b|^2 - 2ab would lose near ones.
            made[at : at + _ROWS] = np.linalg.norm(part - one, axis=1) * scale
            continue
        lengths = np.linalg.norm(part, axis=1) * np.linalg.norm(one)
        with np.errstate(invalid="ignore", divide="ignore"):
            made[at : at + _ROWS] = np.where(lengths > 0, 1 - np.clip(part @ one / lengths, -1, 1), np.nan)
    return made
