"""Figures of a classifier: by hand at the edges, and as scikit-learn has them on drawn scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from inspector.evaluate import metrics
from inspector.evaluate.curves import (
    MOST_POINTS,
    area_under_roc,
    average_precision,
    precision_recall,
    roc,
    steps_of,
    thinned,
)

NAN, INF = math.nan, math.inf


def _ranked(scores: list[list[float]], labels: list[int]) -> tuple[list[int], list[int]]:
    values, right = np.array(scores, dtype=np.float32), np.array(labels)
    places = metrics.ranks(values, right)
    return places.tolist(), metrics.answers(values, right, places).tolist()


def test_the_right_class_is_first_only_above_all_others() -> None:
    scores = [[3, 1, 2], [1, 3, 2], [1, 2, 3], [2, 2, 1]]
    assert _ranked(scores, [0, 0, 0, 0]) == ([1, 3, 3, 2], [0, 1, 2, 1])


@pytest.mark.parametrize(("row", "label", "rank", "answer"), [
    ([1, 1, 1], 0, 3, 1),  # a constant model is never right
    ([1, 1, 1], 2, 3, 0),
    ([0, NAN, 0.5], 2, 2, 1),  # no number counts as above
    ([NAN, 1, 2], 0, 3, 2),
    ([INF, 1, 2], 0, 1, 0),
    ([-INF, -INF, -INF], 0, 3, 1),
    ([-INF, -INF, -INF], 2, 3, 0),
])  # fmt: skip
def test_ties_and_numbers_that_are_none_count_against_the_model(
    row: list[float], label: int, rank: int, answer: int
) -> None:
    assert _ranked([row], [label]) == ([rank], [answer])


def test_a_tie_is_one_at_the_top() -> None:
    scores = np.array([[1, 1, 0], [0, 0, 1], [2, 1, 1], [1, 1, 2]], dtype=np.float32)
    assert metrics.tied(scores, np.array([0, 0, 0, 0])).tolist() == [True, False, False, False]


def test_counts_by_hand() -> None:
    labels, answered = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 0, 0])
    first, second, third, fourth = metrics.counts_of(labels, answered, 4)
    assert (first.support, first.answered, first.right) == (3, 4, 2)
    assert (first.precision, first.recall, first.f1) == (0.5, 2 / 3, 4 / 7)
    assert (second.precision, second.recall) == (0.5, 0.5)
    assert (math.isnan(third.precision), third.recall, third.f1) == (True, 0.0, 0.0)
    assert all(math.isnan(value) for value in (fourth.precision, fourth.recall, fourth.f1))
    assert metrics.confusions(labels, answered, 4) == ((0, 1, 1), (1, 0, 1), (2, 0, 1))


def test_the_most_frequent_error_is_first() -> None:
    assert metrics.confusions(np.array([2, 2, 0, 1]), np.array([1, 1, 2, 1]), 3) == ((2, 1, 2), (0, 2, 1))


def test_calibration_by_hand() -> None:
    found = metrics.calibration(np.array([0.9, 0.9, 0.6, 0.5]), np.array([True, False, True, True]), bins=2)
    low, high = found.bins
    assert (low.pictures, low.confidence, low.accuracy) == (1, 0.5, 1.0)  # an edge belongs to the bin below
    assert (high.pictures, high.accuracy) == (3, 2 / 3)
    assert found.error == pytest.approx(0.25 * 0.5 + 0.75 * (0.8 - 2 / 3))
    assert (found.largest, found.accuracy, found.confidence) == (0.5, 0.75, pytest.approx(0.725))


def test_calibration_of_nothing_is_no_number() -> None:
    found = metrics.calibration(np.zeros(0), np.zeros(0, dtype=bool))
    assert all(math.isnan(value) for value in (found.error, found.largest, found.accuracy, found.confidence))


@pytest.mark.parametrize(("first", "second", "p"), [
    (0, 0, 1.0), (5, 5, 1.0), (0, 1, 1.0), (0, 5, 2 / 32), (1, 5, 2 * 7 / 64), (9, 1, 2 * 11 / 1024),
])  # fmt: skip
def test_mcnemar_by_hand(first: int, second: int, p: float) -> None:
    assert metrics.mcnemar(first, second) == pytest.approx(p, rel=1e-12)
    assert metrics.mcnemar(second, first) == metrics.mcnemar(first, second)


def test_mcnemar_is_the_binomial_test() -> None:
    test = pytest.importorskip("scipy.stats").binomtest
    for first, second in ((3, 17), (40, 61), (2400, 2600), (1, 900)):
        assert metrics.mcnemar(first, second) == pytest.approx(test(first, first + second).pvalue, rel=1e-9)


@pytest.fixture(params=["drawn", "few values", "one of a class"])
def drawn(request: pytest.FixtureRequest) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Softmax shares (400, 5), with ties where there are few values, and what is right."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 5, 400)
    if request.param == "one of a class":
        labels[labels == 4] = 0
        labels[7] = 4
    scores = rng.normal(size=(400, 5)) + 1.5 * np.eye(5)[labels]
    if request.param == "few values":
        scores = np.round(scores)
    scores = scores.astype(np.float32)
    sums = metrics.log_sums(scores)
    return np.stack([metrics.shares_of(scores, sums, k) for k in range(5)], axis=1), labels


def test_shares_are_softmax() -> None:
    scores = np.array([[1000.0, 999.0], [0.0, 0.0]], dtype=np.float32)
    sums = metrics.log_sums(scores)
    assert metrics.shares_of(scores, sums, 0) == pytest.approx([math.e / (1 + math.e), 0.5], rel=1e-12)
    assert metrics.shares_at(scores, sums, np.array([1, 0])) == pytest.approx([1 / (1 + math.e), 0.5], rel=1e-12)


Drawn = tuple[NDArray[np.float64], NDArray[np.int64]]


def test_curves_are_those_of_scikit_learn(drawn: Drawn) -> None:
    peer = pytest.importorskip("sklearn.metrics")
    shares, labels = drawn
    for column in range(5):
        positive = labels == column
        steps = steps_of(shares[:, column], positive)
        recall, precision = precision_recall(steps)
        theirs = peer.precision_recall_curve(positive, shares[:, column])
        np.testing.assert_allclose(precision, theirs[0][::-1], rtol=1e-12)
        np.testing.assert_allclose(recall, theirs[1][::-1], rtol=1e-12)
        np.testing.assert_array_equal(steps.thresholds, theirs[2][::-1])
        theirs = peer.roc_curve(positive, shares[:, column], drop_intermediate=False)
        for ours, other in zip(roc(steps), theirs, strict=False):
            np.testing.assert_allclose(ours, other, rtol=1e-12)
        assert average_precision(steps) == pytest.approx(peer.average_precision_score(positive, shares[:, column]))
        assert area_under_roc(steps) == pytest.approx(peer.roc_auc_score(positive, shares[:, column]))


def test_counts_are_those_of_scikit_learn(drawn: Drawn) -> None:
    peer = pytest.importorskip("sklearn.metrics")
    shares, labels = drawn
    places = metrics.ranks(shares, labels)
    answered = metrics.answers(shares, labels, places)
    counts = metrics.counts_of(labels, answered, 5)
    theirs = peer.precision_recall_fscore_support(labels, answered)
    for number, name in enumerate(("precision", "recall", "f1", "support")):
        np.testing.assert_allclose([getattr(one, name) for one in counts], theirs[number], rtol=1e-12)
    matrix = np.diag([one.right for one in counts])
    for label, answer, pictures in metrics.confusions(labels, answered, 5):
        matrix[label, answer] = pictures
    np.testing.assert_array_equal(matrix, peer.confusion_matrix(labels, answered))
    assert (places == 1).mean() == peer.accuracy_score(labels, answered)


def test_top_k_is_that_of_scikit_learn_where_nothing_is_tied() -> None:
    peer = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(5)
    scores, labels = rng.normal(size=(200, 9)), np.append(np.arange(9), rng.integers(0, 9, 191))
    assert (metrics.ranks(scores, labels) <= 5).mean() == peer.top_k_accuracy_score(labels, scores, k=5)


def test_calibration_is_that_of_scikit_learn(drawn: Drawn) -> None:
    peer = pytest.importorskip("sklearn.calibration")
    shares, labels = drawn
    sure, right = shares.max(axis=1), metrics.ranks(shares, labels) == 1
    sure[:3] = [1 / 3, 0.2, 1.0]  # on edges
    true, told = peer.calibration_curve(right, sure, n_bins=metrics.BINS)
    bins = [one for one in metrics.calibration(sure, right).bins if one.pictures]
    np.testing.assert_allclose([one.accuracy for one in bins], true, rtol=1e-12)
    np.testing.assert_allclose([one.confidence for one in bins], told, rtol=1e-12)


def test_a_class_without_pictures_has_no_areas() -> None:
    steps = steps_of(np.array([0.1, 0.7]), np.array([False, False]))
    assert math.isnan(average_precision(steps)) and math.isnan(area_under_roc(steps))
    alone = steps_of(np.array([0.4]), np.array([True]))
    assert average_precision(alone) == 1.0 and math.isnan(area_under_roc(alone))
    empty = steps_of(np.zeros(0), np.zeros(0, dtype=bool))
    assert math.isnan(average_precision(empty)) and [one.tolist() for one in precision_recall(empty)] == [[0], [1]]


def test_a_long_curve_keeps_its_ends_and_its_shape() -> None:
    x = np.linspace(0, 1, 5000)
    points = thinned(x, x**2)
    assert len(points) <= MOST_POINTS and points[0] == (0, 0) and points[-1] == (1, 1)
    assert max(abs(b - a**2) for a, b in points) < 1e-12
    assert thinned(x[:4], x[:4]) == tuple((value, value) for value in x[:4].tolist())
