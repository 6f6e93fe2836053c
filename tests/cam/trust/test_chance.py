"""Noise is not praised, a true map is, and where no map can be right it is said first."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from inspector.cam.engine.scene import open_scene
from inspector.cam.trust.assess import RANDOM
from inspector.cam.trust.baselines import random_map
from inspector.cam.trust.chance import RANDOM_MAPS, Covered, chance, cover_parts
from inspector.cam.trust.measure import Case
from inspector.cam.trust.verdicts import forgetting, is_bad, summary
from inspector.render.json import as_json
from tests.cam.measuring import assessed


class Fresh(nn.Conv2d):
    """Adds noise that is drawn anew each time."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + torch.rand_like(x)


class Corner(nn.Module):
    """Class 1 where the upper left corner is bright. gain: 0 for an answer that the picture does not change; noisy:
    what its layer puts out is drawn anew each time."""

    def __init__(self, gain: float = 1.0, *, noisy: bool = False) -> None:
        super().__init__()
        self.conv = (Fresh if noisy else nn.Conv2d)(1, 1, 1)
        self.gain = gain
        with torch.no_grad():
            self.conv.weight.fill_(1.0)
            self.conv.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        heat = nn.functional.avg_pool2d(self.conv(x), 4)
        score = self.gain * heat[:, 0, :3, :3].mean(dim=(1, 2))
        return torch.stack([-score, score], dim=1)


class Sure(Corner):
    """Sure of class 1 whatever is in the corner, and surer where it is bright."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + torch.tensor([-2.0, 2.0])


def picture() -> Tensor:
    return 0.5 + torch.rand(1, 1, 32, 32, generator=torch.Generator().manual_seed(5))


def covered() -> Covered:
    return covered_by(Corner().eval())


def covered_by(model: nn.Module) -> Covered:
    with open_scene(model, picture(), [], 1) as scene:
        return cover_parts(Case(scene=scene, heat=picture()[0, 0]))


def test_of_random_maps_one_in_twenty_beats_noise() -> None:
    parts = covered()
    noise = [[random_map((32, 32), (8, 8), n) for n in range(RANDOM_MAPS)]]
    own = parts.correlations(torch.stack([random_map((32, 32), (8, 8), 10_000 + n) for n in range(400)]))
    limit = parts.correlations(torch.stack(noise[0])).quantile(0.95)
    assert float((own > limit).double().mean()) < 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5
    corner = torch.zeros(32, 32, dtype=torch.float64)
    corner[:12, :12] = 1
    found = chance(parts, corner, noise, shares=True)
    assert found.moves and found.beats_noise and found.correlation > 0.4
    assert abs(found.mean) < 0.1
    reversed_map = chance(parts, 1 - corner, noise, shares=True)
    assert not reversed_map.beats_noise and reversed_map.share > 0.9


def test_the_number_is_pearsons_of_the_heat_in_sight_over_both_covers() -> None:
    generator = torch.Generator().manual_seed(3)
    sight = (torch.rand(20, 8, 8, generator=generator) > 0.4).double()
    answers = torch.rand(2, 20, generator=generator, dtype=torch.float64) + torch.tensor([[0.0], [5.0]])
    heat = torch.rand(1, 24, 32, generator=generator)
    pixels = sight.repeat_interleave(3, dim=1).repeat_interleave(4, dim=2)
    left = [float((heat[0].double() * one).sum()) for one in pixels]
    shown = [float(one.mean()) for one in sight]
    own = np.array([a - float(heat.double().mean()) * b * 24 * 32 for a, b in zip(left, shown, strict=True)])
    parts = (answers - answers.mean(dim=1, keepdim=True)).numpy().ravel()
    wanted = np.corrcoef(np.concatenate([own, own]), parts)[0, 1]
    assert float(Covered(sight=sight, answers=answers).correlations(heat)[0]) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("size", [(24, 32), (29, 33)])
def test_how_much_of_the_picture_is_left_says_nothing_of_a_map(size: tuple[int, int]) -> None:
    parts = covered()
    heat = torch.rand(1, *size, generator=torch.Generator().manual_seed(1))
    assert float(parts.correlations(heat + 3)[0]) == pytest.approx(float(parts.correlations(heat)[0]), abs=1e-5)
    assert bool(parts.correlations(torch.full((1, *size), 0.3)).isnan())


def test_every_part_of_the_picture_is_covered_as_often() -> None:
    shown = covered().sight.mean(dim=0)
    # Of 256 draws each: four standard errors.
    assert float((shown - shown.mean()).abs().max()) < 4 * (0.25 / len(covered().sight)) ** 0.5
    assert 0.1 < 1 - float(shown.mean()) < 0.4


def test_noise_stands_as_mean_and_spread_of_several_draws() -> None:
    trust = assessed(Corner().eval(), picture(), layer="conv", target=1, randomise=False, compare=False)
    row = next(row for row in trust.rows if row.of == RANDOM)
    assert row.draws == 8 and all(spread > 0 for name, spread in row.spreads if name in ("deletion", "insertion"))
    assert all(one.draws == 1 and one.spreads == () for one in trust.rows if one.of != RANDOM)


def test_an_answer_that_no_part_of_the_picture_changes_is_told_first_and_nothing_is_praised() -> None:
    trust = assessed(Corner(0.01).eval(), picture(), layer="conv", target=1, compare=False)
    assert is_bad(trust)
    assert summary(trust).startswith("The answer hardly depends on the picture")
    assert "better" not in summary(trust).lower()
    assert "as it should" not in forgetting(trust)


def test_an_answer_that_stays_sure_of_itself_still_depends_on_the_picture() -> None:
    found = chance(covered_by(Sure().eval()), picture()[0, 0], [[random_map((32, 32), (8, 8), 1)]] * 2, shares=True)
    assert found.lowest > 0.95 and found.highest - found.lowest < 0.05 and found.times > 4 and found.moves
    flat = chance(
        covered_by(Corner(0.01).eval()), picture()[0, 0], [[random_map((32, 32), (8, 8), 1)]] * 2, shares=True
    )
    assert flat.times < 4 and not flat.moves


@pytest.mark.parametrize("noisy", [True, False])
def test_a_map_that_changes_when_nothing_changed_voids_the_randomisation_test(noisy: bool) -> None:
    torch.manual_seed(0)
    trust = assessed(Corner(noisy=noisy).eval(), picture(), layer="conv", target=1, method="eigen-cam", compare=False)
    assert trust.repeated is not None
    if noisy:
        assert trust.repeated < 0.99 and trust.stages == () and is_bad(trust)
        assert "changes when nothing changed" in forgetting(trust) and "changes when nothing changed" in as_json(trust)
    else:
        assert trust.repeated > 0.999 and trust.void == "" and trust.stages
