"""The measures beside those of pytorch-grad-cam, on the same model, picture and map; skipped without it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from inspector.cam.engine.scene import open_scene
from inspector.cam.trust.infill import impute
from inspector.cam.trust.measure import Case, by_heat
from inspector.cam.trust.measures.drop import drop, increase
from inspector.cam.trust.measures.road import SHARES, road

peer = pytest.importorskip("pytorch_grad_cam.metrics.road")
multiplied = pytest.importorskip("pytorch_grad_cam.metrics.cam_mult_image")

TARGET = 2


@pytest.fixture
def net() -> nn.Module:
    torch.manual_seed(7)
    made = nn.Sequential(
        nn.Conv2d(3, 6, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(54, 4)
    )
    with torch.no_grad():
        made[-1].weight *= 8
    return made.eval()


@pytest.fixture
def picture() -> Tensor:
    rng = torch.Generator().manual_seed(8)
    return nn.functional.interpolate(torch.randn(1, 3, 6, 7, generator=rng), size=(30, 41), mode="bilinear")


@pytest.fixture
def heat() -> Tensor:
    # From left to right, without ties: both orders are the same.
    return torch.linspace(0, 0.9, 41) + 0.1 * torch.rand(30, 41, generator=torch.Generator().manual_seed(9))


def probability(output: Tensor) -> Tensor:
    return torch.softmax(output, dim=-1)[TARGET]


def test_filled_pixels_are_the_peers(picture: Tensor, heat: Tensor) -> None:
    for share in (0.1, 0.5, 0.9):
        mask = torch.zeros(heat.numel(), dtype=torch.bool)
        mask[by_heat(heat)[: round(share * heat.numel())]] = True
        mask = mask.reshape(heat.shape)
        theirs = peer.NoisyLinearImputer(noise=0.0)(picture[0], (~mask).float())
        ours = impute(picture[0], mask)
        assert float((ours - theirs).abs().max()) < 0.01


def test_road_is_the_peers(net: nn.Module, picture: Tensor, heat: Tensor) -> None:
    with open_scene(net, picture, [], TARGET) as scene:
        ours = road(Case(scene=scene, heat=heat)).value
    theirs = peer.ROADCombined(percentiles=[round(100 * s) for s in SHARES])
    found = theirs(picture, heat[None].numpy(), [probability], net)
    # Their noise is drawn anew each time, a hundredth of the picture's deviation; the effect itself is larger.
    assert ours == pytest.approx(float(found[0]), abs=0.005)
    assert abs(ours) > 0.015


def test_drop_and_increase_are_the_peers(net: nn.Module, picture: Tensor, heat: Tensor) -> None:
    with torch.no_grad():
        whole = float(probability(net(picture)[0]))
    for one in (heat, 1 - heat, heat**3):
        with open_scene(net, picture, [], TARGET) as scene:
            case = Case(scene=scene, heat=one)
            ours, grown = drop(case).value, increase(case).value
        lost = multiplied.DropInConfidence()(picture, one[None].numpy(), [probability], net)
        more = multiplied.IncreaseInConfidence()(picture, one[None].numpy(), [probability], net)
        # They leave out the paper's division by the probability of the whole picture.
        np.testing.assert_allclose(ours, lost[0] / whole, atol=1e-5)
        assert grown == more[0]
