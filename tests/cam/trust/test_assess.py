"""Baselines, agreement, the randomisation test, and all of it together."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from inspector.cam.engine.maps import heat_maps
from inspector.cam.trust.baselines import centred_gaussian, edges, random_map
from inspector.cam.trust.correlation import energy_in_mask, points_at, rank_correlation
from inspector.cam.trust.randomise import randomisation
from inspector.errors import UsageError
from inspector.progress import Stopped
from tests.cam.measuring import assessed


@pytest.fixture
def net() -> nn.Module:
    torch.manual_seed(4)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
    ).eval()  # fmt: skip


@pytest.fixture
def picture() -> Tensor:
    return torch.randn(1, 3, 24, 32, generator=torch.Generator().manual_seed(5))


def test_rank_correlation_by_hand() -> None:
    one = torch.tensor([1.0, 2, 3, 4, 5])
    # Differences of the ranks 1, -1, 0, 1, -1: 1 - 6 * 4 / (5 * 24).
    assert rank_correlation(one, torch.tensor([2.0, 1, 3, 50, 4])) == pytest.approx(1 - 24 / 120)
    assert rank_correlation(one, -one) == pytest.approx(-1)
    assert rank_correlation(one, torch.exp(one)) == pytest.approx(1)
    assert math.isnan(rank_correlation(one, torch.ones(5)))


def test_ties_take_their_mean_rank() -> None:
    a, b = torch.tensor([1.0, 1, 2, 3]), torch.tensor([1.0, 2, 3, 3])
    ranks_a, ranks_b = np.array([1.5, 1.5, 3, 4]), np.array([1, 2, 3.5, 3.5])
    assert rank_correlation(a, b) == pytest.approx(np.corrcoef(ranks_a, ranks_b)[0, 1])


def test_energy_and_pointing_by_hand() -> None:
    heat = torch.tensor([[1.0, 3.0], [0.0, 4.0]])
    mask = torch.tensor([[False, True], [False, True]])
    assert energy_in_mask(heat, mask) == pytest.approx(7 / 8)
    assert points_at(heat, mask) == 1
    assert points_at(heat, ~mask) == 0
    assert points_at(torch.tensor([[4.0, 3.0], [0.0, 4.0]]), mask) == 0.5
    assert math.isnan(energy_in_mask(torch.zeros(2, 2), mask)) and math.isnan(points_at(torch.zeros(2, 2), mask))


def test_baselines_know_only_the_picture() -> None:
    middle = centred_gaussian((11, 7))
    assert middle.argmax() == 5 * 7 + 3 and middle.max() == 1
    # One standard deviation, a quarter of the side, from the middle.
    assert centred_gaussian((400, 400))[199, 300].item() == pytest.approx(math.exp(-0.5), abs=0.01)
    step = torch.zeros(3, 8, 8)
    step[:, :, 4:] = 1
    found = edges(step)
    assert found[:, 3:5].min() == 1 and found[:, :3].max() == 0
    assert edges(torch.ones(3, 5, 5)).max() == 0
    noise = random_map((20, 30), (5, 6), seed=1)
    assert noise.shape == (20, 30) and float(noise.std()) > 0.1
    assert torch.equal(noise, random_map((20, 30), (5, 6), seed=1))
    assert not torch.equal(noise, random_map((20, 30), (5, 6), seed=2))


def test_randomisation_goes_from_the_answer_down_and_leaves_the_model(net: nn.Module, picture: Tensor) -> None:
    before = {name: value.clone() for name, value in net.state_dict().items()}
    seen: list[list[str]] = []

    def remap(twin: nn.Module) -> Tensor:
        seen.append([n for n, value in twin.state_dict().items() if not torch.equal(value, before[n])])
        return heat_maps(twin, picture, layer="2", targets=1).raw[0]

    stages = randomisation(net, remap, seed=3)
    assert [s.down_to for s in stages] == ["6", "2", "0"]
    assert [s.modules for s in stages] == [1, 2, 3]
    assert seen[0] == []
    assert {n.partition(".")[0] for n in seen[1]} == {"6"}
    assert {n.partition(".")[0] for n in seen[2]} == {"6", "2"}
    assert len(seen[3]) == len(before)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert [s.correlation for s in randomisation(net, remap, seed=3)] == [s.correlation for s in stages]


def test_a_map_that_ignores_the_head_passes_no_test(net: nn.Module, picture: Tensor) -> None:
    eigen = randomisation(net, lambda m: heat_maps(m, picture, layer="2", targets=1, method="eigen-cam").raw[0])
    assert eigen[0].correlation == pytest.approx(1)
    steady = randomisation(net, lambda _: picture[0, 0], most_stages=2)
    assert [s.correlation for s in steady] == pytest.approx([1, 1])
    assert len(steady) == 2 and steady[-1].modules == 3


def test_everything_of_one_map(net: nn.Module, picture: Tensor) -> None:
    mask = torch.zeros(24, 32, dtype=torch.bool)
    mask[:12] = True
    seen: list[str] = []
    trust = assessed(net, picture, layer="2", target=2, mask=mask, progress=lambda d, t, note: seen.append(note))
    assert [row.of for row in trust.rows] == ["grad-cam", "random", "centre", "edges"]
    own, *others = (dict(row.values) for row in trust.rows)
    assert "sensitivity" in own and not any("sensitivity" in other for other in others)
    assert own["energy"] == pytest.approx(
        energy_in_mask(heat_maps(net, picture, layer="2", targets=2).heat[0], mask), abs=1e-6
    )
    assert all(math.isfinite(value) for row in trust.rows for _, value in row.values)
    assert {name for name, _ in trust.rows[0].curves} == {"deletion", "insertion", "road"}
    assert len(trust.stages) == 3 and trust.target == 2 and trust.layer == "2"
    assert len(set(seen)) >= 4
    again = assessed(net, picture, layer="2", target=2, mask=mask)
    assert again == trust


def test_quick_measures_alone_and_stopping(net: nn.Module, picture: Tensor) -> None:
    trust = assessed(net, picture, measures=(), randomise=False)
    assert trust.stages == () and trust.rows[0].values == ()

    def stop(_done: int, _total: int | None, _note: str) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        assessed(net, picture, progress=stop)
    assert not any(m._forward_hooks for m in net.modules())
    with pytest.raises(UsageError, match="One picture"):
        assessed(net, picture.expand(2, -1, -1, -1))
