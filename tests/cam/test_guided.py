"""Guided backpropagation by hand, with ReLUs as modules, functions, methods and in place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from inspector.cam.engine.maps import heat_maps
from inspector.errors import ExplainError

RELUS: dict[str, Callable[[Tensor], Tensor]] = {
    "module": nn.ReLU(),
    "module in place": nn.ReLU(inplace=True),
    "function": functional.relu,
    "function in place": lambda x: functional.relu(x, inplace=True),
    "torch": torch.relu,
    "torch in place": torch.relu_,
    "method": lambda x: x.relu(),
    "method in place": lambda x: x.relu_(),
    "relu6": functional.relu6,
}


class Two(nn.Module):
    """y = sum of v relu(B relu(A x)): two ReLUs, everything on paper."""

    def __init__(self, relu: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.relu = relu
        self.a = nn.Parameter(torch.tensor([[1.0, -1.0], [0.5, 2.0]], dtype=torch.float64))
        self.b = nn.Parameter(torch.tensor([[1.0, -2.0], [3.0, 1.0]], dtype=torch.float64))
        self.v = nn.Parameter(torch.tensor([[1.0, -1.0], [1.0, 1.0]], dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        h = self.relu(x.flatten(1) @ self.a.T)
        return self.relu(h @ self.b.T) @ self.v.T


@pytest.mark.parametrize("way", RELUS)
def test_by_hand(way: str) -> None:
    model = Two(RELUS[way])
    x = torch.tensor([[[[3.0, 1.0]]]], dtype=torch.float64)
    # A x = [2, 3.5], B of it = [-5, 9.5] (6 under ReLU6, which is flat there: the gradient of 9.5 is cut off).
    # Class 1: [1, 1] comes back; the first unit is off, so [0, 1]; through B: [3, 1]; through A: [3.5, -1].
    expected = torch.tensor([[[3.5, 1.0]]], dtype=torch.float64)
    if way == "relu6":
        expected = torch.zeros_like(expected)
    torch.testing.assert_close(heat_maps(model, x, method="guided-backpropagation", targets=1).raw, expected)
    # Class 0: [1, -1] comes back; what is negative is held back already: nothing is left, unlike in the plain gradient.
    nothing = heat_maps(model, x, method="guided-backpropagation", targets=0).raw
    assert nothing.abs().max() == 0
    if way != "relu6":
        assert heat_maps(model, x, method="saliency", targets=0).raw.abs().max() > 0


def test_guided_grad_cam_is_the_product() -> None:
    torch.manual_seed(2)
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(inplace=True), nn.Conv2d(4, 5, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(5 * 25, 3),
    ).double()  # fmt: skip
    x = torch.randn(2, 3, 15, 15, dtype=torch.float64)
    both, guided, cam = (
        heat_maps(model, x, layer="2", targets=1, method=method)
        for method in ("guided-grad-cam", "guided-backpropagation", "grad-cam")
    )
    torch.testing.assert_close(both.raw, guided.raw * cam.heat)
    assert both.raw.max() > 0


def test_a_model_without_relus_is_refused_and_functions_are_torchs_own_again() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GELU(), nn.Flatten(), nn.Linear(4 * 36, 2))
    with pytest.raises(ExplainError, match="none ran"):
        heat_maps(model, torch.randn(1, 3, 8, 8), method="guided-backpropagation")
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    (torch.relu(x) * torch.tensor([1.0, -1.0])).sum().backward()
    assert x.grad.tolist() == [0.0, -1.0]
