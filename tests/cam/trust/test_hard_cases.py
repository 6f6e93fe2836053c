"""Maps, pictures and models that are not what measures expect: a number that means something, or none."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from inspector.cam.engine.combine import augmented_maps, joined
from inspector.cam.engine.maps import heat_maps
from inspector.cam.engine.scene import open_scene
from inspector.cam.report import LayerProposal, Options
from inspector.cam.trust.agreement import agreement
from inspector.cam.trust.assess import Trust
from inspector.cam.trust.correlation import rank_correlation
from inspector.cam.trust.measure import Case
from inspector.cam.trust.measures.drop import drop, increase
from inspector.cam.trust.randomise import randomisation
from inspector.errors import UsageError
from tests.cam.measuring import assessed, maker, priced

MEASURED = ("average-drop", "increase-in-confidence", "deletion", "insertion", "road", "sensitivity")


def net(channels: int = 3, pool: int = 2) -> nn.Sequential:
    torch.manual_seed(4)
    return nn.Sequential(
        nn.Conv2d(channels, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(pool), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
    ).eval()  # fmt: skip


def picture(channels: int = 3, height: int = 12, width: int = 16) -> Tensor:
    return torch.randn(1, channels, height, width, generator=torch.Generator().manual_seed(5))


def own(trust: Trust) -> dict[str, float]:
    return dict(trust.rows[0].values)


def test_a_map_that_is_the_same_everywhere_has_no_number() -> None:
    model = net()
    with torch.no_grad():
        model[3].weight.zero_()
        model[3].bias.fill_(1.0)  # the layer puts out one value
    trust = assessed(model, picture(), layer="4", target=1)
    assert all(math.isnan(own(trust)[name]) for name in MEASURED)
    assert trust.rows[0].curves == ()
    # The maps beside it have theirs.
    assert all(math.isfinite(value) for _, value in trust.rows[2].values)
    assert math.isnan(trust.stages[0].correlation)


def test_a_map_without_heat_or_not_finite_has_no_number() -> None:
    broken = net()
    with torch.no_grad():
        broken[3].weight[0] = math.nan
    dead = net()
    with torch.no_grad():
        dead[7].weight.zero_()
    for model in (broken, dead):
        trust = assessed(model, picture(), layer="4", target=1)
        assert all(math.isnan(own(trust)[name]) for name in MEASURED)
        assert all(math.isnan(stage.correlation) for stage in trust.stages)


def test_one_cell_points_nowhere() -> None:
    trust = assessed(net(pool=4), picture(height=4, width=4), layer="4", target=0)
    assert math.isnan(own(trust)["average-drop"]) and math.isnan(own(trust)["road"])


@pytest.mark.parametrize("shape", [(1, 12, 16), (3, 5, 9), (3, 2, 3), (4, 33, 7)])
def test_grey_tiny_narrow_and_four_channels(shape: tuple[int, int, int]) -> None:
    trust = assessed(net(shape[0]), picture(*shape), layer="3", target=1)
    assert len(trust.rows) == 4
    assert all(math.isfinite(value) for _, value in trust.rows[2].values)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions(kind: torch.dtype) -> None:
    whole = own(assessed(net(), picture(), layer="3", target=1))
    model = net().to(kind)
    made = own(assessed(model, picture(), layer="3", target=1))
    assert {p.dtype for p in model.parameters()} == {kind}
    for name in ("average-drop", "deletion", "insertion", "road"):
        assert made[name] == pytest.approx(whole[name], abs=0.02)


class Certain(nn.Module):
    """Gives class 1 no probability at all where the left half is bright."""

    def forward(self, x: Tensor) -> Tensor:
        score = -1e6 * x[:, :, :, :4].sum(dim=(1, 2, 3))
        return torch.stack([torch.zeros_like(score), score], dim=1)


def test_nothing_can_be_lost_of_a_probability_of_0() -> None:
    bright = torch.ones(1, 1, 8, 8, dtype=torch.float64)
    heat = torch.zeros(8, 8, dtype=torch.float64)
    heat[:, 4:] = 1
    with open_scene(Certain(), bright, [], 1) as scene:
        case = Case(scene=scene, heat=heat)
        assert math.isnan(drop(case).value)
        assert increase(case).value == 1  # from 0 to a half
    with open_scene(Certain(), bright * math.nan, [], 1) as scene:
        case = Case(scene=scene, heat=heat)
        assert math.isnan(drop(case).value) and math.isnan(increase(case).value)


def test_cells_that_are_not_finite_have_no_rank() -> None:
    one = torch.arange(6.0)
    assert math.isnan(rank_correlation(one, torch.tensor([0, 1, 2, 3, math.nan, 5])))
    assert math.isnan(rank_correlation(one, torch.tensor([0, 1, 2, 3, math.inf, 5])))


@pytest.mark.parametrize(
    "options",
    [
        Options(eigen_smooth=True),
        Options(augmented=True),
        Options(fusion="mean"),
        Options(fusion="product", augmented=True),
    ],
    ids=lambda o: f"{o.fusion}{o.augmented:d}{o.eigen_smooth:d}",
)
def test_the_map_that_is_measured_is_the_one_that_is_shown(options: Options) -> None:
    model, shown = net(), picture()
    make = augmented_maps if options.augmented else heat_maps
    parts = [
        make(model, shown, layer=layer, targets=1, options=options)
        for layer in (("4", "1") if options.fusion else ("4",))
    ]
    expected = joined(parts, options.fusion) if options.fusion else parts[0]
    chosen = maker(model, shown, method="grad-cam", layer="4", layers=("4", "1"), target=1, options=options)
    assert torch.equal(chosen(model, shown).heat, expected.heat)
    trust = assessed(model, shown, layer="4", layers=("4", "1"), target=1, options=options, mask=expected.heat[0] > 0.5)
    inside = float(expected.heat[0][expected.heat[0] > 0.5].sum() / expected.heat[0].sum())
    assert own(trust)["energy"] == pytest.approx(inside, rel=1e-5)
    plain = own(assessed(model, shown, layer="4", target=1))
    assert any(own(trust)[name] != plain[name] for name in MEASURED)
    assert trust.options == options and trust.agreement is not None


def test_a_layout_that_was_changed_is_kept() -> None:
    class Last(nn.Module):
        """Puts out (N, 6, 6, 6): which axis holds the channels cannot be seen."""

        def forward(self, x: Tensor) -> Tensor:
            return x.permute(0, 2, 3, 1)

    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), Last(), nn.Flatten(), nn.Linear(216, 3)).eval()
    common = {
        "path": "1",
        "kind": "Last",
        "shape": (6, 6, 6),
        "prefix_tokens": 0,
        "grid": (6, 6),
        "rank": 0,
        "reason": "",
    }
    shown = picture(3, 6, 6)
    found = {
        layout: own(assessed(model, shown, layer=LayerProposal(layout=layout, **common), target=1))  # type: ignore[arg-type]
        for layout in ("NHWC", "NCHW")
    }
    assert found["NHWC"]["deletion"] != found["NCHW"]["deletion"]


def test_what_means_nothing_together_is_said() -> None:
    with pytest.raises(UsageError, match="nothing to fuse"):
        assessed(net(), picture(), method="saliency", options=Options(fusion="mean"))
    with pytest.raises(UsageError, match="no fusion 'sum'"):
        priced(net(), picture(), options=Options(fusion="sum"))


def test_a_method_of_the_picture_stands_beside_noise_as_fine_as_it_is() -> None:
    shown = picture()
    trust = assessed(net(), shown, method="saliency", target=1)
    assert trust.layer == "" and trust.agreement is None
    chosen = maker(net(), shown, method="saliency", target=1)
    assert chosen.layers[0].grid == (12, 16)


class Upside(nn.Module):
    """Lists its head first and uses it last; a part that is never called stands between."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 3)
        self.unused = nn.Linear(2, 2)
        self.first = nn.Conv2d(3, 4, 3)
        self.second = nn.Conv2d(4, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(self.second(self.first(x).relu()).mean(dim=(2, 3)))
        return found


def test_stages_follow_the_forward_and_not_the_list() -> None:
    torch.manual_seed(2)
    model = Upside().eval()
    shown = picture(3, 9, 9)
    stages = randomisation(model, lambda m: heat_maps(m, shown, layer="second", targets=0).raw[0])
    assert [stage.down_to for stage in stages][:3] == ["head", "second", "first"]
    assert not any(m._forward_pre_hooks for m in model.modules())


def test_methods_are_compared_where_their_maps_agree_by_arithmetic() -> None:
    model, shown = net(), picture()
    chosen = maker(model, shown, method="grad-cam", layer="4", target=1)
    found = agreement(model, shown, chosen, chosen(model, shown).raw[0])
    assert found is not None and found.methods[0] == "grad-cam"
    other = found.methods.index("hires-cam")
    raw = heat_maps(model, shown, layer="4", targets=1, method=found.methods[other]).raw[0]
    mine = heat_maps(model, shown, layer="4", targets=1).raw[0]
    assert found.correlations[0][other] == found.correlations[other][0] == rank_correlation(mine, raw)
    assert all(found.correlations[n][n] == pytest.approx(1) for n in range(len(found.methods)))
