"""Methods x layers from one forward and one backward: each cell is what it is alone."""

from __future__ import annotations

from unittest import mock

import pytest
import torch
from torch import Tensor, nn

from inspector.cam.engine.maps import Axes, heat_grid, heat_maps
from inspector.cam.methods import METHODS


class Net(nn.Module):
    """Three stages with in-place ReLUs, a pooled linear head; counts how often it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.second = nn.Conv2d(4, 6, 3, stride=2, padding=1)
        self.third = nn.Conv2d(6, 8, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        for layer in (self.first, self.second, self.third):
            x = self.relu(layer(x))
        return self.head(x.mean(dim=(2, 3)))


@pytest.fixture
def net() -> Net:
    torch.manual_seed(2)
    return Net().double().eval()


@pytest.fixture
def batch() -> Tensor:
    return torch.randn(2, 3, 24, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


LAYERS = ("third", "second", "first")
NAMES = tuple(method.id for method in METHODS if method.arithmetic)


def test_each_cell_is_what_it_is_alone(net: Net, batch: Tensor) -> None:
    (grid,) = heat_grid(net, batch, Axes(layers=LAYERS, methods=NAMES, classes=[[1, 3]]))
    assert len(grid) == 3
    for layer, row in zip(LAYERS, grid, strict=True):
        assert [maps.method for maps in row] == list(NAMES)
        for maps in row:
            alone = heat_maps(net, batch, layer=layer, method=maps.method, targets=[1, 3])
            assert maps.layer.path == layer
            torch.testing.assert_close(maps.raw, alone.raw, rtol=1e-12, atol=1e-14)
            torch.testing.assert_close(maps.heat, alone.heat, rtol=1e-12, atol=1e-14)
            assert maps.targets.tolist() == [1, 3]


def test_one_forward_and_one_backward_for_each_score(net: Net, batch: Tensor) -> None:
    (layers,) = heat_grid(net, batch, Axes(layers=LAYERS))
    proposals = [row[0].layer for row in layers]  # traced already
    shared = [name for name in NAMES if name != "finer-cam"]
    with (
        mock.patch.object(Net, "forward", autospec=True, side_effect=Net.forward) as forward,
        mock.patch("torch.autograd.grad", side_effect=torch.autograd.grad) as backward,
    ):
        heat_grid(net, batch, Axes(layers=proposals, methods=shared))
        assert (forward.call_count, backward.call_count) == (1, 1)
        heat_grid(net, batch, Axes(layers=proposals, methods=NAMES))
        assert (forward.call_count, backward.call_count) == (2, 3)
        heat_grid(net, batch, Axes(layers=proposals, methods=["eigen-cam"]))
        assert (forward.call_count, backward.call_count) == (3, 3)


def test_a_method_without_gradient_says_that_it_read_none(net: Net, batch: Tensor) -> None:
    (((eigen, grad),),) = heat_grid(net, batch, Axes(layers=["third"], methods=["eigen-cam", "grad-cam"]))
    assert torch.isnan(eigen.gradient_peak).all()
    assert (grad.gradient_peak > 0).all()


def test_the_proposed_layers_are_taken_where_none_is_named(net: Net, batch: Tensor) -> None:
    (grid,) = heat_grid(net, batch, Axes())
    assert grid[0][0].layer.rank == 1
    assert len(grid) > 1
    assert len(heat_grid(net, batch, Axes(most_layers=1))[0]) == 1
