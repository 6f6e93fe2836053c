"""The map, what stands apart on it, neighbours and groups."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from inspector.errors import MissingLibrary, UsageError
from inspector.projector.methods import METHODS
from inspector.projector.neighbours import Metric, nearest
from inspector.projector.project import even_sample, lengths_of, project, sampled
from tests.projector.making import points


def blobs(seed: int = 0) -> np.ndarray:
    """Three groups of 20 in 8 dimensions, far from each other."""
    draw = np.random.default_rng(seed)
    return np.concatenate([draw.normal(size=(20, 8)) + 30 * draw.normal(size=8) for _ in range(3)])


def test_what_is_told_of_a_map() -> None:
    values = np.random.default_rng(0).normal(size=(60, 5))
    values[7] = 40.0
    found = project(points(values))
    assert found.method == "pca" and found.seed is None and found.dims == 5 and found.count == 60
    assert np.flatnonzero(found.apart).tolist() == [7]
    assert np.allclose(found.norms, np.linalg.norm(values, axis=1))
    assert len(found.shares) == 2 and found.shares[0] > 0.9 and found.clusters is None
    distances = np.linalg.norm(values - values.mean(axis=0), axis=1)
    low, high = np.quantile(distances, (0.25, 0.75))
    assert found.apart_from == pytest.approx(high + 3 * (high - low))


def test_nothing_stands_apart_of_few_or_of_equal_ones() -> None:
    assert not project(points(np.array([[0.0, 0], [0, 1], [9e9, 0]]))).apart.any()
    assert not project(points(np.full((30, 3), 0.1, np.float32))).apart.any()


def test_one_direction_gives_a_flat_map_all_the_same() -> None:
    found = project(points(np.arange(10.0)[:, None] * np.ones((1, 1))), components=3)
    assert found.coordinates.shape == (10, 3) and not found.coordinates[:, 1:].any()


@pytest.mark.parametrize(
    ("asked", "says"),
    [({"method": "nonsense"}, 'no method "nonsense". Methods: pca, tsne, umap'), ({"components": 4}, "2 or 3")],
)
def test_what_means_nothing_is_refused(asked: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        project(points(blobs()), **asked)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="1 row to draw; PCA takes 2"):
        project(points(blobs()[:1]))


def test_an_even_sample() -> None:
    assert even_sample(5, 9).tolist() == [0, 1, 2, 3, 4]
    assert even_sample(10, 4).tolist() == [0, 2, 5, 7]
    kept = sampled(points(np.arange(10.0)[:, None], labels=tuple("abcdefghij")), 4)
    assert kept.labels == ("a", "c", "f", "h") and kept.numbers.tolist() == [0, 2, 5, 7]


def test_lengths_of_numbers_whose_squares_do_not_fit() -> None:
    norms, distances = lengths_of(np.array([[3e300, 4e300], [0.0, 0.0]]))
    assert norms.tolist() == [5e300, 0.0] and np.allclose(distances, 2.5e300)


@pytest.mark.parametrize("metric", list(Metric))
def test_neighbours_are_scikit_learns(metric: Metric) -> None:
    neighbors = pytest.importorskip("sklearn.neighbors")
    values = np.random.default_rng(2).normal(size=(500, 12)).astype(np.float32)
    finder = neighbors.NearestNeighbors(n_neighbors=8, metric=metric.value, algorithm="brute").fit(values.astype(float))
    distances, places = finder.kneighbors(values[[17]].astype(float))
    found = nearest(points(values), 17, metric=metric, count=7)
    assert [one.place for one in found] == places[0][1:].tolist()
    assert np.allclose([one.distance for one in found], distances[0][1:], atol=1e-12)


@pytest.mark.parametrize("metric", list(Metric))
def test_neighbours_by_hand(metric: Metric) -> None:
    values = np.array([[1.0, 0], [2, 0], [0, 1], [0, 0], [-1, 0]])
    found = nearest(points(values, numbers=np.array([3, 5, 6, 8, 9])), 3, metric=metric)
    wanted = {
        Metric.COSINE: [(5, 0.0), (6, 1.0), (9, 2.0)],
        Metric.EUCLIDEAN: [(5, 1.0), (8, 1.0), (6, 2**0.5), (9, 2.0)],
    }[metric]
    assert [(one.number, pytest.approx(one.distance)) for one in found] == wanted


def test_what_has_no_neighbours() -> None:
    table = points(np.array([[0.0, 0], [1, 0]]))
    with pytest.raises(UsageError, match="Row 0 is zero: it has no direction"):
        nearest(table, 0)
    with pytest.raises(UsageError, match=r"Row 7 of table.weight is not on the map"):
        nearest(table, 7)
    assert nearest(table, 1) == ()


def test_near_ones_are_told_apart_far_from_zero() -> None:
    """|a|^2 + |b|^2 - 2ab would give 0 for all of these."""
    values = np.array([[1e9, 0.0], [1e9, 3e-3], [1e9, 1e-3]])
    assert [one.number for one in nearest(points(values), 0, metric=Metric.EUCLIDEAN)] == [2, 1]


def test_groups_are_found_and_the_largest_is_the_first() -> None:
    pytest.importorskip("sklearn")
    values = blobs()[:55]
    found = project(points(values), clusters=3, seed=4)
    assert found.clusters is not None and found.seed == 4
    assert np.bincount(found.clusters).tolist() == [20, 20, 15]
    assert len(set(found.clusters[:20].tolist())) == 1 and set(found.clusters[40:].tolist()) == {2}
    with pytest.raises(UsageError, match="30 groups of 55 points cannot be"):
        project(points(values), clusters=30)


@pytest.mark.parametrize("name", ["tsne", "umap"])
def test_neighbours_stay_together_and_a_seed_gives_the_same_map(name: str) -> None:
    pytest.importorskip({"tsne": "sklearn", "umap": "umap"}[name])
    values = blobs()
    found, again = (project(points(values), method=name, seed=3) for _ in range(2))
    assert found.coordinates.tobytes() == again.coordinates.tobytes() and found.seed == 3 and found.shares == ()
    kind = np.repeat(np.arange(3), 20)
    for at, place in enumerate(found.coordinates):
        distances = np.linalg.norm(found.coordinates - place, axis=1)
        distances[at] = np.inf
        assert kind[int(distances.argmin())] == kind[at]


def test_long_vectors_are_shortened_first_and_it_is_said() -> None:
    pytest.importorskip("sklearn")
    values = np.random.default_rng(0).normal(size=(20, 200))
    found = project(points(values), method="tsne")
    assert (
        found.says[0] == "Of 200 numbers a vector, the first 20 principal components were taken: 100 % of the variance."
    )
    assert found.says[-1] == "Perplexity 6.33."


def test_few_points_are_enough() -> None:
    for name, package in (("tsne", "sklearn"), ("umap", "umap")):
        pytest.importorskip(package)
        assert np.isfinite(project(points(blobs()[:4]), method=name).coordinates).all()
        repeated = np.repeat(np.eye(3), 20, axis=0)
        assert np.isfinite(project(points(repeated), method=name).coordinates).all()


@pytest.mark.parametrize("method", [method.id for method in METHODS])
def test_equal_rows_are_one_place(method: str) -> None:
    """t-SNE's own start divides by their deviation, which ended the process."""
    found = project(points(np.ones((30, 3), np.float32)), method=method, components=3)
    assert not found.coordinates.any() and found.coordinates.shape == (30, 3)
    assert found.says == ("All rows are equal, so there is nothing to draw apart.",)


@pytest.mark.parametrize("method", [method for method in METHODS if method.needs])
def test_without_its_library_it_says_how_to_get_it(method: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.installed.is_installed", lambda name: name not in ("sklearn", "umap"))
    with pytest.raises(MissingLibrary, match=r"which is not installed\. Run: pip install"):
        project(points(blobs()), method=method.id)  # type: ignore[attr-defined]
    with pytest.raises(MissingLibrary, match="k-means needs sklearn"):
        project(points(blobs()), clusters=2)


def test_more_points_than_a_method_takes_are_sampled_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from inspector.projector import methods

    few = replace(METHODS[0], most=10)
    monkeypatch.setattr(methods, "METHODS", (few,))
    found = project(points(blobs(), labels=tuple(map(str, range(60)))))
    assert found.count == 10 and found.total == 60 and found.labels[1] == "6"
    assert found.says == ("PCA takes 10 points: an even sample of the 60.",)


def test_importing_it_loads_no_library() -> None:
    code = "import sys, inspector.projections; print([m for m in ('sklearn', 'umap', 'torch') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
