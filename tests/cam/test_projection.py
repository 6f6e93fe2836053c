"""The strongest pattern is the first right singular vector's, also where others are nearly as strong."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from inspector.cam.engine.projection import first_component


def by_svd(features: Tensor) -> Tensor:
    """NumPy's decomposition in float64, with the sign that agrees with the mean over channels."""
    made = []
    for one in features.double().numpy():
        matrix = one.reshape(len(one), -1).T
        _, _, right = np.linalg.svd(matrix, full_matrices=False)
        projected = matrix @ right[0]
        agreement = float(projected @ matrix.mean(axis=1))
        strongest = projected[np.abs(projected).argmax()]
        made.append(projected * np.sign(agreement if agreement else strongest))
    return torch.from_numpy(np.stack(made)).reshape(len(features), *features.shape[2:])


def with_singular_values(values: list[float], channels: int, side: int) -> Tensor:
    draw = torch.Generator().manual_seed(2)
    places = torch.linalg.qr(torch.randn(side * side, len(values), generator=draw, dtype=torch.float64))[0]
    patterns = torch.linalg.qr(torch.randn(channels, len(values), generator=draw, dtype=torch.float64))[0]
    return ((places * torch.tensor(values, dtype=torch.float64)) @ patterns.T).T.reshape(1, channels, side, side)


@pytest.mark.parametrize(("channels", "side"), [(40, 5), (8, 9), (25, 5), (1, 4), (3, 1), (120, 9), (70, 12)])
@pytest.mark.parametrize("kind", ["positive", "centred", "faint"])
def test_random_features(channels: int, side: int, kind: str) -> None:
    draw = torch.Generator().manual_seed(1)
    features = torch.rand(3, channels, side, side, generator=draw, dtype=torch.float64)
    if kind == "centred":
        features = features - features.mean(dim=1, keepdim=True) + 0.01 * torch.rand_like(features[:, :1])
    if kind == "faint":
        features = features * 1e-30
    expected = by_svd(features)
    size = float(expected.abs().max())
    assert float((first_component(features) - expected).abs().max()) <= 1e-9 * size


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 0.999999, 0.1],  # a pair that power iteration does not part
        [1.0, 0.99, 0.98, 0.97, 0.96],  # none outweighs the others
        [1.0, 0.5, 0.5, 0.5],  # it does, by little
        [1.0, 1e-9],
        [3.0],
    ],
)
def test_close_singular_values(values: list[float]) -> None:
    for channels, side in ((30, 4), (10, 6), (120, 9), (70, 12)):
        features = with_singular_values(values, channels, side)
        expected = by_svd(features)
        assert float((first_component(features) - expected).abs().max()) <= 1e-6 * float(expected.abs().max())


def test_the_place_with_most_in_it_lies_outside_of_the_strongest_pattern() -> None:
    """Two patterns that share no place and no channel: an iteration that starts in one never leaves it."""
    features = torch.zeros(1, 70, 9, 9, dtype=torch.float64)
    features[0, 0, 0, 0] = 8.0
    features[0, 1, 1:] = 1.0  # 72 places, together 8.49
    found = first_component(features)
    torch.testing.assert_close(found, by_svd(features))
    assert float(found[0, 0, 0]) == pytest.approx(0, abs=1e-12)


def test_nothing_and_what_is_not_finite() -> None:
    for shape in ((2, 3, 4, 5), (2, 70, 9, 9)):
        assert not first_component(torch.zeros(shape)).any()
        mixed = torch.rand(shape)
        mixed[1] = 0
        found = first_component(mixed)
        assert found[0].all()
        assert not found[1].any()
        mixed[1, 0, 0, 0] = torch.inf
        assert first_component(mixed).isnan().all()
