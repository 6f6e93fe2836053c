"""Maps joined over layers, over channels by their strongest pattern, and over changed copies of the picture."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from inspector.cam.engine.combine import augmented_maps, fuse
from inspector.cam.engine.maps import Axes, heat_grid, heat_maps
from inspector.cam.methods import METHODS
from inspector.cam.report import Options
from inspector.errors import UsageError


@pytest.fixture
def net() -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.Tanh(), nn.Conv2d(4, 6, 3, padding=1), nn.Tanh(), nn.Flatten(),
        nn.Linear(6 * 48, 5),
    ).double()  # fmt: skip


@pytest.fixture
def batch() -> Tensor:
    return torch.randn(2, 3, 12, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def test_fusions_by_hand(net: nn.Module, batch: Tensor) -> None:
    one, two = (row[0] for row in heat_grid(net, batch, Axes(layers=["0", "2"]))[0])
    one = replace(one, heat=torch.tensor([[[0.0, 0.5], [1.0, 0.2]]]))
    two = replace(two, heat=torch.tensor([[[1.0, 0.5], [0.0, 0.6]]]))
    assert fuse([one, two]).flatten().tolist() == pytest.approx([1.0, 1.0, 1.0, 0.8])
    assert fuse([one, two], "product").flatten().tolist() == pytest.approx([0.0, 1.0, 0.0, 0.48])
    lifted = torch.tanh(2 * torch.tensor([1.0, 0.5, 1.0, 0.6]))
    assert fuse([one, two], "maximum").flatten().tolist() == pytest.approx((lifted / lifted.max()).tolist())
    silent = replace(one, heat=torch.zeros(1, 2, 2))
    assert fuse([silent, silent]).sum() == 0
    for wrong in ("sum", ""):
        with pytest.raises(UsageError, match="fused by"):
            fuse([one], wrong)
    with pytest.raises(UsageError, match="fused by"):
        fuse([])


def test_eigen_smoothing_of_hires_cam_is_eigen_grad_cam(net: nn.Module, batch: Tensor) -> None:
    smooth = heat_maps(net, batch, layer="2", method="hires-cam", options=Options(eigen_smooth=True), targets=1)
    named = heat_maps(net, batch, layer="2", method="eigen-grad-cam", targets=1)
    plain = heat_maps(net, batch, layer="2", method="hires-cam", targets=1)
    assert torch.equal(smooth.raw, named.raw)
    assert not torch.allclose(smooth.heat, plain.heat)


@pytest.mark.parametrize("method", [m.id for m in METHODS if m.by_layer and m.id not in ("cam", "guided-grad-cam")])
def test_eigen_smoothing_takes_any_method_of_a_layer(net: nn.Module, batch: Tensor, method: str) -> None:
    made = heat_maps(net, batch, layer="2", method=method, options=Options(eigen_smooth=True))
    assert made.raw.shape == (2, 6, 8)
    assert torch.isfinite(made.raw).all()


def test_augmentation_is_the_mean_over_six_copies(net: nn.Module, batch: Tensor) -> None:
    made = augmented_maps(net, batch, layer="2", targets=[1, 4], method="layer-cam")
    total = torch.zeros(2, 6, 8, dtype=torch.float64)
    for factor in (0.9, 1.0, 1.1):
        total += heat_maps(net, batch * factor, layer="2", targets=[1, 4], method="layer-cam").raw / 6
        mirrored = torch.flip(batch * factor, dims=[-1])
        total += torch.flip(heat_maps(net, mirrored, layer="2", targets=[1, 4], method="layer-cam").raw, dims=[-1]) / 6
    torch.testing.assert_close(made.raw, total)
    assert torch.equal(made.logits, heat_maps(net, batch).logits)


def test_augmentation_keeps_the_class_that_the_picture_itself_has(net: nn.Module, batch: Tensor) -> None:
    best = heat_maps(net, batch, layer="2").targets
    assert torch.equal(augmented_maps(net, batch, layer="2").targets, best)
    assert augmented_maps(net, batch).layer.rank == 1
