"""Principal components against NumPy's singular value decomposition."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from inspector.progress import Stopped
from inspector.projector import pca
from inspector.projector.pca import principal_components

SHAPES = [(200, 30), (30, 200), (64, 64), (5, 3), (3, 5000), (2500, 7)]


def svd(values: NDArray[np.floating], k: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(coordinates, directions, shares), as NumPy has them."""
    centred = values.astype(np.float64) - values.astype(np.float64).mean(axis=0)
    left, deviations, right = np.linalg.svd(centred, full_matrices=False)
    return left[:, :k] * deviations[:k], right[:k], (deviations**2 / (deviations**2).sum())[:k]


def made(shape: tuple[int, int], seed: int = 0) -> NDArray[np.float64]:
    """Rows with a mean and directions of different strength."""
    draw = np.random.default_rng(seed)
    return draw.normal(size=shape) * np.linspace(3, 0.5, shape[1]) + draw.normal(size=shape[1])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_equals_the_singular_value_decomposition_up_to_sign(shape: tuple[int, int], kind: type) -> None:
    values = made(shape).astype(kind)
    k = min(3, shape[0] - 1, shape[1])
    coordinates, directions, shares = svd(values, k)
    found = principal_components(values, k)
    signs = np.sign((found.directions * directions).sum(axis=1))
    scale = np.abs(coordinates).max()
    assert np.abs(found.coordinates - coordinates * signs).max() <= 1e-10 * scale
    assert np.abs(found.directions - directions * signs[:, None]).max() <= 1e-10
    assert np.abs(found.shares - shares).max() <= 1e-12
    assert found.exact


def test_a_weak_direction_beside_a_strong_one_is_as_exact() -> None:
    """Squares of the values lose half of the digits; the last step takes none."""
    draw = np.random.default_rng(3)
    values = draw.normal(size=(300, 12)) * np.array([1e5, 1.0, 1e-1, *([1e-4] * 9)])
    coordinates, directions, _ = svd(values, 3)
    found = principal_components(values, 3)
    signs = np.sign((found.directions * directions).sum(axis=1))
    each = np.abs(found.coordinates - coordinates * signs).max(axis=0) / np.abs(coordinates).max(axis=0)
    assert np.all(each <= 1e-8)


def test_the_largest_loading_is_positive_and_runs_are_equal() -> None:
    values = made((80, 9), seed=5)
    first, again, turned = (principal_components(v, 3) for v in (values, values.copy(), -values))
    assert np.all(first.directions[range(3), np.abs(first.directions).argmax(axis=1)] > 0)
    assert first.coordinates.tobytes() == again.coordinates.tobytes()
    assert np.allclose(turned.directions, first.directions) and np.allclose(turned.coordinates, -first.coordinates)


@pytest.mark.parametrize("shape", [(400, 120), (120, 400)])
def test_by_iteration_where_the_side_is_too_long(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(1)
    values = draw.normal(size=shape) + 20 * draw.normal(size=(shape[0], 1)) * draw.normal(size=shape[1])
    monkeypatch.setattr(pca, "MOST_SIDE", 50)
    coordinates, _, shares = svd(values, 1)
    found = principal_components(values, 1)
    assert found.exact
    assert np.abs(np.abs(found.coordinates) - np.abs(coordinates)).max() <= 1e-6 * np.abs(coordinates).max()
    assert abs(found.shares[0] - shares[0]) <= 1e-9


def test_what_has_not_settled_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pca, "MOST_SIDE", 5)
    monkeypatch.setattr(pca, "_ROUNDS", 2)
    assert not principal_components(np.random.default_rng(0).normal(size=(300, 100)), 3).exact


def test_equal_rows_have_no_directions_to_tell() -> None:
    found = principal_components(np.full((6, 4), 2.5, np.float32), 2)
    assert found.coordinates.tolist() == [[0.0, 0.0]] * 6 and found.shares.tolist() == [0.0, 0.0]
    assert found.mean.tolist() == [2.5] * 4


def test_on_a_line_the_second_direction_is_exactly_nothing() -> None:
    values = np.outer(np.arange(50.0), [1.0, 2.0, 2.0])
    found = principal_components(values, 2)
    assert np.allclose(found.coordinates[:, 0], (np.arange(50) - 24.5) * 3)
    assert found.coordinates[:, 1].tolist() == [0.0] * 50
    assert found.shares[0] == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_numbers_whose_squares_do_not_fit(scale: float) -> None:
    values = made((40, 6))
    plain, far = principal_components(values, 2), principal_components(values * scale, 2)
    assert np.allclose(far.coordinates / scale, plain.coordinates) and np.allclose(far.shares, plain.shares)


def test_progress_stops_it() -> None:
    def stop(done: int, total: int | None, note: str) -> None:
        if note == "products":
            raise Stopped

    with pytest.raises(Stopped):
        principal_components(made((50, 5)), 2, progress=stop)
