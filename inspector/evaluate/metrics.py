"""Figures of a classifier from its scores and the right answers: pure NumPy, every edge defined.

Scores are (N, K) of any float type, a row for each picture, a column for each output; labels are (N,) indices of
columns. Ties count against the model: an answer is right only where its score is above all others. A score that is no
number counts as above the right one, so a model gains nothing by NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating]
Labels = NDArray[np.int64]

# As the paper that made the measure common has it (Guo 2017, arXiv 1706.04599).
BINS = 15
# Rows that are worked on at a time: of a thousand classes some megabytes.
_ROWS = 4096


def ranks(scores: Scores, labels: Labels) -> NDArray[np.int64]:
    """(N,) place of the right class, 1 for the first: one more than the others that are not strictly below it."""
    found = np.empty(len(labels), dtype=np.int64)
    for rows in _blocks(len(labels)):
        own = np.take_along_axis(scores[rows], labels[rows, None], axis=1)
        below = (scores[rows] < own).sum(axis=1)
        # Not below: the others that are as high or no number, and itself.
        found[rows] = scores.shape[1] - below
    return found


def answers(scores: Scores, labels: Labels, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N,) what the model is taken to have answered: the right class where its rank is 1, else the highest other one,
    the first of equals. So a tie stands in the confusion matrix as the error that it is counted as."""
    found = labels.copy()
    for rows in _blocks(len(labels)):
        others = np.where(np.isnan(scores[rows]), np.inf, scores[rows])
        np.put_along_axis(others, labels[rows, None], -np.inf, axis=1)
        best = others.argmax(axis=1)
        # Where all others are -inf too, the first of them.
        best = np.where(best == labels[rows], (labels[rows] + 1) % scores.shape[1], best)
        found[rows] = np.where(places[rows] == 1, labels[rows], best)
    return found


def tied(scores: Scores, labels: Labels) -> NDArray[np.bool_]:
    """(N,) whether another class has exactly the score of the right one and none a higher one."""
    found = np.empty(len(labels), dtype=np.bool_)
    for rows in _blocks(len(labels)):
        own = np.take_along_axis(scores[rows], labels[rows, None], axis=1)
        found[rows] = ((scores[rows] == own).sum(axis=1) > 1) & ~(scores[rows] > own).any(axis=1)
    return found


def finite(scores: Scores) -> NDArray[np.bool_]:
    """(N,) whether every score of a row is a number. The others have no shares, so no curve and no calibration."""
    found = np.empty(len(scores), dtype=np.bool_)
    for rows in _blocks(len(scores)):
        found[rows] = np.isfinite(scores[rows]).all(axis=1)
    return found


def log_sums(scores: Scores) -> NDArray[np.float64]:
    """(N,) logarithm of the sum of exponentials of each row, so that a column's shares are exp(column - this)."""
    found = np.empty(len(scores), dtype=np.float64)
    for rows in _blocks(len(scores)):
        exact = scores[rows].astype(np.float64)
        high = exact.max(axis=1)
        # Of rows that are not finite the result is none either, and nobody asks for it.
        with np.errstate(invalid="ignore", over="ignore"):
            found[rows] = high + np.log(np.exp(exact - high[:, None]).sum(axis=1))
    return found


def shares_of(scores: Scores, sums: NDArray[np.float64], column: int) -> NDArray[np.float64]:
    """(N,) softmax share of one class."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.exp(scores[:, column].astype(np.float64) - sums)


def shares_at(scores: Scores, sums: NDArray[np.float64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
    """(N,) softmax share of another class in each row."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.exp(scores[np.arange(len(scores)), columns].astype(np.float64) - sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Of one class. support: pictures of it. answered: pictures called so. right: both."""

    support: int
    answered: int
    right: int

    @property
    def precision(self) -> float:
        """Share of those called so that are; NaN where none was."""
        return self.right / self.answered if self.answered else math.nan

    @property
    def recall(self) -> float:
        """Share of its pictures that were called so; NaN where there is none."""
        return self.right / self.support if self.support else math.nan

    @property
    def f1(self) -> float:
        """Harmonic mean of both: 2 right / (support + answered); NaN where both are 0."""
        both = self.support + self.answered
        return 2 * self.right / both if both else math.nan


def counts_of(labels: Labels, answered: NDArray[np.int64], outputs: int) -> tuple[Counts, ...]:
    """One of each class, in output order."""
    support = np.bincount(labels, minlength=outputs)
    called = np.bincount(answered, minlength=outputs)
    right = np.bincount(labels[labels == answered], minlength=outputs)
    return tuple(
        Counts(support=int(s), answered=int(c), right=int(r)) for s, c, r in zip(support, called, right, strict=True)
    )


def confusions(labels: Labels, answered: NDArray[np.int64], outputs: int) -> tuple[tuple[int, int, int], ...]:
    """(right class, answer, how many pictures) of every error that was made, the most frequent first.

    With the right ones of `counts_of` this is the confusion matrix: a thousand classes would have a million cells.
    """
    wrong = labels != answered
    cells, counts = np.unique(labels[wrong] * outputs + answered[wrong], return_counts=True)
    order = np.lexsort((cells, -counts))
    return tuple((int(cells[k]) // outputs, int(cells[k]) % outputs, int(counts[k])) for k in order)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Answers whose confidence is above low (from 0 on: at it) and at most high. confidence, accuracy: means over
    them, NaN of none."""

    low: float
    high: float
    pictures: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Whether an answer that is 80 % sure is right in 80 %. error: expected calibration error, the mean gap between
    confidence and accuracy of the bins, weighed by their pictures; NaN of none. largest: the largest gap. confidence,
    accuracy: means over all. Nothing is fitted: the shares are the softmax of the model's own scores."""

    bins: tuple[Bin, ...]
    error: float
    largest: float
    confidence: float
    accuracy: float
    pictures: int


def calibration(confidence: NDArray[np.float64], right: NDArray[np.bool_], bins: int = BINS) -> Calibration:
    """Bins of equal width. confidence: (N,) softmax share of each answer, finite. right: (N,)."""
    edges = np.linspace(0.0, 1.0, bins + 1)
    # A share on an edge belongs to the bin below it, as scikit-learn's calibration_curve has it.
    place = np.searchsorted(edges[1:-1], confidence)
    count = np.bincount(place, minlength=bins)
    sure = np.bincount(place, weights=confidence, minlength=bins)
    good = np.bincount(place, weights=right.astype(np.float64), minlength=bins)
    made = tuple(
        Bin(
            low=float(edges[k]),
            high=float(edges[k + 1]),
            pictures=int(count[k]),
            confidence=float(sure[k] / count[k]) if count[k] else math.nan,
            accuracy=float(good[k] / count[k]) if count[k] else math.nan,
        )
        for k in range(bins)
    )
    n = len(confidence)
    gaps = [(one.pictures, abs(one.confidence - one.accuracy)) for one in made if one.pictures]
    return Calibration(
        bins=made,
        error=sum(pictures * gap for pictures, gap in gaps) / n if n else math.nan,
        largest=max((gap for _, gap in gaps), default=math.nan),
        confidence=float(confidence.mean()) if n else math.nan,
        accuracy=float(right.mean()) if n else math.nan,
        pictures=n,
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided exact p-value of McNemar's test: as likely a split of these pictures, or a more uneven one, by a fair
    coin. 1 where the two disagree nowhere (McNemar 1947, Psychometrika 12; exact: Binomial(n, 1/2)).

    only_first: pictures that the first alone has right.
    """
    count, fewer = only_first + only_second, min(only_first, only_second)
    if count == 0 or only_first == only_second:
        return 1.0
    whole = math.lgamma(count + 1) - count * math.log(2)
    terms = [math.exp(whole - math.lgamma(k + 1) - math.lgamma(count - k + 1)) for k in range(fewer + 1)]
    return min(1.0, 2 * math.fsum(terms))


def _blocks(rows: int) -> list[slice]:
    return [slice(start, start + _ROWS) for start in range(0, rows, _ROWS)]
