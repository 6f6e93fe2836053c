"""Each method by hand on two channels of two cells, and against its paper's formula written out in loops."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import Tensor

from inspector.cam.engine.projection import reduce
from inspector.cam.methods import METHODS, method_named
from inspector.cam.targets.objectives import against_nearest
from inspector.errors import ExplainError, UsageError

# Two channels on a 1x2 grid.
ACTIVATION = torch.tensor([[[[1.0, 3.0]], [[4.0, 1.0]]]], dtype=torch.float64)
GRADIENT = torch.tensor([[[[1.0, 3.0]], [[-2.0, 0.0]]]], dtype=torch.float64)

# Grad-CAM: weights 2 and -1. HiResCAM: [1 - 8, 9 + 0]. LayerCAM: only the first channel's gradient is positive.
# Element-wise: relu([1, 9]) + relu([-8, 0]). XGrad-CAM: weights (1 + 9) / 4 and (-8 + 0) / 5.
# Grad-CAM++: alpha = 1 / (2 + 4 g) where g is positive: 1/6 and 1/14, so the weight is 1/6 + 3/14.
PLUS = Fraction(1, 6) + Fraction(3, 14)
BY_HAND = {
    "grad-cam": [-2.0, 5.0],
    "hires-cam": [-7.0, 9.0],
    "layer-cam": [1.0, 9.0],
    "element-wise": [1.0, 9.0],
    "xgrad-cam": [2.5 - 6.4, 7.5 - 1.6],
    "grad-cam++": [float(PLUS), float(3 * PLUS)],
    "counterfactual": [2.0, -5.0],
}


def arithmetic(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    method = method_named(name)

    def made(activation: Tensor, gradient: Tensor) -> Tensor:
        assert method.arithmetic is not None
        return reduce(method.arithmetic(activation, gradient), eigen=method.eigen)

    return made


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand(name: str) -> None:
    assert arithmetic(name)(ACTIVATION, GRADIENT)[0, 0].tolist() == pytest.approx(BY_HAND[name], abs=1e-14)


def test_eigen_cam_by_hand() -> None:
    """The matrix [[1, 4], [3, 1]] of places x channels; the Gram matrix has the roots of x^2 - 27 x + 121."""
    root = (27 + np.sqrt(27**2 - 4 * 121)) / 2
    # An eigenvector of A^T A = [[10, 7], [7, 17]] is (7, root - 10); both channels are positive, so is the sign.
    vector = np.array([7, root - 10])
    vector /= np.linalg.norm(vector)
    expected = [1 * vector[0] + 4 * vector[1], 3 * vector[0] + 1 * vector[1]]
    assert arithmetic("eigen-cam")(ACTIVATION, GRADIENT)[0, 0].tolist() == pytest.approx(expected, abs=1e-12)


def written_out(name: str, a: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The papers' formulas for one picture, cell by cell. a, g: (C, h, w)."""
    channels, height, width = a.shape
    made = np.zeros((height, width))
    for k in range(channels):
        total = a[k].sum()
        for i in range(height):
            for j in range(width):
                if name == "grad-cam":
                    made[i, j] += g[k].sum() / (height * width) * a[k, i, j]
                elif name == "hires-cam":
                    made[i, j] += g[k, i, j] * a[k, i, j]
                elif name == "layer-cam":
                    made[i, j] += max(g[k, i, j], 0) * a[k, i, j]
                elif name == "element-wise":
                    made[i, j] += max(g[k, i, j] * a[k, i, j], 0)
                elif name == "xgrad-cam":
                    made[i, j] += (g[k] * a[k]).sum() / total * a[k, i, j]
                elif name == "grad-cam++":
                    weight = 0.0
                    for x in g[k].flat:
                        below = 2 * x**2 + total * x**3
                        weight += (x**2 / below if below else 0.0) * max(x, 0)
                    made[i, j] += weight * a[k, i, j]
                else:
                    made[i, j] -= g[k].sum() / (height * width) * a[k, i, j]
    return made


@pytest.mark.parametrize("name", BY_HAND)
def test_against_the_formula_written_out(name: str) -> None:
    rng = np.random.default_rng(4)
    a, g = rng.normal(size=(3, 5, 4, 6)), rng.normal(size=(3, 5, 4, 6))
    g[0, 1] = 0  # a channel that the score does not read
    ours = arithmetic(name)(torch.from_numpy(a), torch.from_numpy(g)).numpy()
    for n in range(3):
        np.testing.assert_allclose(ours[n], written_out(name, a[n], g[n]), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("shape", [(2, 5, 4, 6), (2, 40, 3, 3)], ids=["few channels", "many channels"])
@pytest.mark.parametrize("name", ["eigen-cam", "eigen-grad-cam"])
def test_eigen_methods_against_the_full_decomposition(name: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(6)
    a, g = rng.normal(size=shape) + 0.5, rng.normal(size=shape)
    ours = arithmetic(name)(torch.from_numpy(a), torch.from_numpy(g)).numpy()
    used = a if name == "eigen-cam" else g * a
    for n in range(shape[0]):
        matrix = used[n].reshape(shape[1], -1).T
        _, _, vectors = np.linalg.svd(matrix, full_matrices=False)
        projected = matrix @ vectors[0]
        # The sign rule: as the mean over the channels.
        projected *= np.sign(projected @ matrix.mean(axis=1))
        np.testing.assert_allclose(ours[n].ravel(), projected, rtol=1e-9, atol=1e-9)


def test_the_sign_does_not_depend_on_the_mean_alone() -> None:
    """Channels that cancel in the mean: the strongest cell is then positive."""
    a = torch.tensor([[[[1.0, 5.0, 2.0]], [[-1.0, -5.0, -2.0]]]])
    found = arithmetic("eigen-cam")(a, a)[0, 0]
    assert found.argmax() == 1
    assert float(found.min()) > 0


OF_ONE_PASS = [method for method in METHODS if method.arithmetic]


@pytest.mark.parametrize("method", OF_ONE_PASS, ids=lambda m: m.id)
def test_not_a_number_stays_visible(method: object) -> None:
    bad = ACTIVATION.clone()
    bad[0, 0, 0, 0] = torch.nan
    found = arithmetic(method.id)(bad, GRADIENT)  # type: ignore[attr-defined]
    assert not torch.isfinite(found).all()


@pytest.mark.parametrize("method", OF_ONE_PASS, ids=lambda m: m.id)
def test_scale_of_the_gradient_is_only_scale(method: object) -> None:
    """A faint gradient gives the same picture, except where the formula itself mixes orders (Grad-CAM++)."""
    made = [arithmetic(method.id)(ACTIVATION, GRADIENT * scale) for scale in (1.0, 1e-12)]  # type: ignore[attr-defined]
    pictures = [m.clamp_min(0) / m.max() for m in made]
    tolerance = 1.0 if method.id == "grad-cam++" else 1e-9  # type: ignore[attr-defined]
    assert float((pictures[0] - pictures[1]).abs().max()) <= tolerance
    assert float(made[1].abs().max()) > 0


def test_finer_cam_differentiates_the_distance_to_the_nearest() -> None:
    logits = torch.tensor([[5.0, 4.0, -9.0, 4.5, 3.0], [0.0, 1.0, 2.0, 3.0, 9.0]])
    targets = torch.tensor([0, 2])
    # Nearest to 5: 4.5, 4, 3. Nearest to 2: 1 and 3, then 0.
    expected = [5 - 0.6 * (4.5 + 4 + 3) / 3, 2 - 0.6 * (1 + 3 + 0) / 3]
    assert against_nearest(logits, targets).tolist() == pytest.approx(expected)
    two = against_nearest(torch.tensor([[2.0, 1.0]]), torch.tensor([1]))
    assert two.tolist() == pytest.approx([1 - 0.6 * 2])
    with pytest.raises(ExplainError, match="one output"):
        against_nearest(torch.tensor([[2.0]]), torch.tensor([0]))
    assert method_named("finer-cam").objective is against_nearest


def test_an_unknown_method_is_told_the_choices() -> None:
    with pytest.raises(UsageError, match="no method 'grad-cam-2'") as caught:
        method_named("grad-cam-2")
    assert "layer-cam" in (caught.value.hint or "")
