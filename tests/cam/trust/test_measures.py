"""Measures of trust by hand, on models whose answer is known pixel by pixel."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from inspector.cam.engine.scene import open_scene
from inspector.cam.trust.infill import impute
from inspector.cam.trust.measure import Case, Measured, area, by_heat
from inspector.cam.trust.measures import MEASURES
from inspector.cam.trust.measures.drop import drop, increase
from inspector.cam.trust.measures.perturbation import STEPS, blurred, deletion, insertion
from inspector.cam.trust.measures.road import road
from inspector.cam.trust.measures.sensitivity import sensitivity


class Patch(nn.Module):
    """Class 1 is as sure as the sum over the left half of the picture, class 0 is 0."""

    def forward(self, x: Tensor) -> Tensor:
        score = x[:, :, :, : x.shape[3] // 2].sum(dim=(1, 2, 3)) / 16
        return torch.stack([torch.zeros_like(score), score], dim=1)


def measured(compute: object, heat: Tensor, picture: Tensor | None = None) -> Measured:
    picture = torch.ones(1, 1, 8, 8, dtype=torch.float64) if picture is None else picture
    with open_scene(Patch(), picture, [], 1) as scene:
        return compute(Case(scene=scene, heat=heat))  # type: ignore[operator]


def half(left: float, right: float) -> Tensor:
    heat = torch.full((8, 8), right, dtype=torch.float64)
    heat[:, :4] = left
    return heat


def sure(score: float) -> float:
    return 1 / (1 + math.exp(-score))


def test_the_area_and_the_order() -> None:
    assert area([(0.0, 1.0), (0.5, 0.0), (1.0, 0.0)]) == pytest.approx(0.25)
    assert area([(1.0, 2.0), (3.0, 2.0)]) == pytest.approx(2.0)
    assert by_heat(torch.tensor([[0.0, 1.0], [0.5, 1.0]])).tolist() == [1, 3, 2, 0]


def test_drop_and_increase_by_hand() -> None:
    # The whole left half is 32 pixels of 1: a score of 2.
    assert measured(drop, half(1, 0)).value == 0
    assert measured(drop, half(0.5, 0)).value == pytest.approx((sure(2) - sure(1)) / sure(2))
    assert measured(drop, half(0, 1)).value == pytest.approx((sure(2) - 0.5) / sure(2))
    assert measured(increase, half(1, 0)).value == 0
    darker = torch.ones(1, 1, 8, 8, dtype=torch.float64)
    darker[0, 0, :4, :4] = -1  # half of the left half speaks against the class
    heat = half(1, 0)
    heat[:4] = 0
    assert measured(increase, heat, darker).value == 1
    assert measured(drop, heat, darker).value == 0


def test_deletion_by_hand() -> None:
    right = measured(deletion, half(1, 0))
    wrong = measured(deletion, half(0, 1))
    shares = [number / STEPS for number in range(STEPS + 1)]
    # The hottest pixels go first, 64 in all, 32 of them in the left half.
    expected = [(s, sure((32 - min(round(s * 64), 32)) / 16)) for s in shares]
    late = [(s, sure((32 - max(round(s * 64) - 32, 0)) / 16)) for s in shares]
    np.testing.assert_allclose(right.curve, expected)
    np.testing.assert_allclose(wrong.curve, late)
    assert right.value == pytest.approx(area(expected)) and right.value < wrong.value


def test_insertion_ends_at_the_picture_and_starts_blurred() -> None:
    rng = torch.Generator().manual_seed(1)
    picture = torch.rand(1, 1, 24, 24, dtype=torch.float64, generator=rng)
    heat = torch.rand(24, 24, dtype=torch.float64, generator=rng)
    made = measured(insertion, heat, picture)
    with open_scene(Patch(), picture, [], 1) as scene:
        case = Case(scene=scene, heat=heat)
        ends = case.probabilities(torch.stack([blurred(picture[0]), picture[0]])).tolist()
    assert [made.curve[0][1], made.curve[-1][1]] == pytest.approx(ends)


def test_blurring_keeps_the_mean_colour_and_takes_the_detail() -> None:
    flat = torch.full((3, 30, 40), 0.7, dtype=torch.float64)
    torch.testing.assert_close(blurred(flat), flat)
    dots = (torch.arange(900).reshape(1, 30, 30) % 2).double()
    assert float(blurred(dots)[:, 8:-8, 8:-8].std()) < 0.01


def test_imputing_is_the_exact_solution_of_the_linear_system() -> None:
    rng = np.random.default_rng(2)
    picture, mask = rng.normal(size=(2, 7, 9)), rng.random((7, 9)) < 0.6
    mask[0, :3] = True  # in a corner, where there are fewer neighbours
    places = list(zip(*np.nonzero(mask), strict=True))
    at = {place: i for i, place in enumerate(places)}
    for channel in range(2):
        a, b = np.zeros((len(places), len(places))), np.zeros(len(places))
        for (y, x), i in at.items():
            for dy in (-1, 0, 1):
                for dx in (-1, 0, 1):
                    other = (y + dy, x + dx)
                    if (dy, dx) == (0, 0) or not (0 <= other[0] < 7 and 0 <= other[1] < 9):
                        continue
                    weight = 1 / 6 if 0 in (dy, dx) else 1 / 12
                    a[i, i] += weight
                    if other in at:
                        a[i, at[other]] -= weight
                    else:
                        b[i] += weight * picture[channel][other]
        expected = np.linalg.solve(a, b)
        made = impute(torch.from_numpy(picture), torch.from_numpy(mask))[channel].numpy()
        np.testing.assert_allclose(made[mask], expected, atol=1e-3)
        assert np.array_equal(made[~mask], picture[channel][~mask])


def test_imputing_nothing_and_everything() -> None:
    picture = torch.rand(3, 6, 6, dtype=torch.float64)
    assert torch.equal(impute(picture, torch.zeros(6, 6, dtype=torch.bool)), picture)
    whole = impute(picture, torch.ones(6, 6, dtype=torch.bool))
    torch.testing.assert_close(whole, picture.mean(dim=(1, 2), keepdim=True).expand_as(picture))
    big = torch.rand(3, 96, 96)
    mask = torch.ones(96, 96, dtype=torch.bool)
    mask[0] = False  # known along one edge alone
    made = impute(big, mask)
    assert torch.isfinite(made).all()
    assert big.min() - 1e-3 <= made.min() and made.max() <= big.max() + 1e-3


def test_road_knows_the_right_half_from_the_wrong_one() -> None:
    picture = torch.zeros(1, 1, 16, 16, dtype=torch.float64)
    picture[0, 0, 4:12, 2:6] = 4  # what counts, surrounded by nothing
    heat = picture[0, 0] / 4
    right, wrong = measured(road, heat, picture).value, measured(road, 1 - heat, picture).value
    assert right > 0.1
    assert wrong < -0.1
    assert measured(road, heat, picture).value == right  # its noise is seeded


def test_sensitivity_by_hand() -> None:
    picture = torch.linspace(0, 1, 64, dtype=torch.float64).reshape(1, 1, 8, 8)
    heat = half(1, 0)
    with open_scene(Patch(), picture, [], 1) as scene:
        noises = [scene.noise(n).clamp(-1, 1) for n in range(8)]
        steady = sensitivity(Case(scene=scene, heat=heat, remap=lambda _: heat))
        moved = sensitivity(
            Case(scene=scene, heat=heat, remap=lambda x: heat + (x - picture)[0, 0])  # follows the picture
        )
    assert steady.value == 0
    assert moved.value == pytest.approx(max(0.02 * float(n.norm()) for n in noises) / float(heat.norm()))


IDS = ("average-drop", "increase-in-confidence", "deletion", "insertion", "road", "sensitivity")


def test_the_measures_are_these() -> None:
    assert tuple(m.id for m in MEASURES) == IDS
