"""Precision over recall and the ROC curve of one class against all others, and the areas below them.

Definitions are scikit-learn's: a threshold for each distinct share, precision 1 at recall 0, average precision as a sum
of steps (no interpolation), area under the ROC curve by trapezoids.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Points of a curve that are kept to be drawn; areas are of all.
MOST_POINTS = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """thresholds: distinct shares, the highest first. hits, false_alarms: of the pictures at or above each, how many
    are of the class and how many are not. positives, negatives: of all pictures."""

    thresholds: NDArray[np.float64]
    hits: NDArray[np.int64]
    false_alarms: NDArray[np.int64]
    positives: int
    negatives: int


def steps_of(shares: NDArray[np.float64], positive: NDArray[np.bool_]) -> Steps:
    """shares: (N,), finite. positive: (N,) whether each is of the class."""
    order = np.argsort(-shares, kind="stable")
    sorted_shares, is_hit = shares[order], positive[order]
    # The last of each run of equal shares: a threshold cannot divide them.
    last = np.append(np.flatnonzero(np.diff(sorted_shares)), len(shares) - 1) if len(shares) else np.zeros(0, int)
    hits = np.cumsum(is_hit, dtype=np.int64)[last]
    return Steps(
        thresholds=sorted_shares[last],
        hits=hits,
        false_alarms=last + 1 - hits,
        positives=int(positive.sum()),
        negatives=int(len(positive) - positive.sum()),
    )


def precision_recall(steps: Steps) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(recall, precision) from the highest threshold to the lowest, with recall 0, precision 1 in front.

    Of no picture of the class recall is none: NaN.
    """
    called = steps.hits + steps.false_alarms
    recall = steps.hits / steps.positives if steps.positives else np.full(len(steps.hits), np.nan)
    return np.concatenate([[0.0], recall]), np.concatenate([[1.0], steps.hits / called])


def roc(steps: Steps) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(false positive rate, true positive rate) from 0, 0 to 1, 1; NaN where there is no such picture."""

    def share(counts: NDArray[np.int64], whole: int) -> NDArray[np.float64]:
        found = counts / whole if whole else np.full(len(counts), np.nan)
        return np.concatenate([[0.0], found])

    return share(steps.false_alarms, steps.negatives), share(steps.hits, steps.positives)


def average_precision(steps: Steps) -> float:
    """Sum over thresholds of the gain in recall times the precision there; NaN without a picture of the class."""
    recall, precision = precision_recall(steps)
    return float(np.sum(np.diff(recall) * precision[1:])) if steps.positives else float("nan")


def area_under_roc(steps: Steps) -> float:
    """How often a picture of the class has a higher share than one of another, ties for half; NaN without either."""
    if not steps.positives or not steps.negatives:
        return float("nan")
    false_positive, true_positive = roc(steps)
    return float(np.sum(np.diff(false_positive) * (true_positive[1:] + true_positive[:-1]) / 2))


def thinned(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[tuple[float, float], ...]:
    """At most `MOST_POINTS` of a curve, first and last among them, as even as can be along its length."""
    points = np.stack([x, y], axis=1)
    if len(points) > MOST_POINTS:
        along = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(points, axis=0)).sum(axis=1))])
        wanted = np.linspace(0.0, along[-1], MOST_POINTS)
        points = points[np.unique(np.searchsorted(along, wanted).clip(0, len(points) - 1))]
    return tuple((float(a), float(b)) for a, b in points)
