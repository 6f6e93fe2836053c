"""One frozen spec: it is refused where it means nothing, finds its layers, makes the map again and says its cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from inspector.cam.describe import Setting
from inspector.cam.engine.combine import AUGMENTED_MAPS
from inspector.cam.engine.maps import Axes
from inspector.cam.explain import explain
from inspector.cam.inputs.preprocess import prepare
from inspector.cam.live import look
from inspector.cam.picture_maps import explain_pictures
from inspector.cam.report import PLAIN, Options, Preprocessing
from inspector.cam.spec import MapRequest, MapSpec
from inspector.errors import ExplainError, InspectorError, UsageError

STEPS = Preprocessing(
    resize=None, crop=None, mean=(0.5,) * 3, std=(0.5,) * 3, channels=3, interpolation="bilinear", source="",
    assumed=False,
)  # fmt: skip
FUSED = Options(fusion="mean")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 6, 3, padding=1, stride=2)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(self.second(self.first(x).relu()).relu().mean(dim=(2, 3)))
        return found


@pytest.fixture
def net() -> Net:
    return Net().eval()


def _picture(number: int, size: tuple[int, int] = (16, 12)) -> Image.Image:
    return Image.fromarray(np.random.default_rng(number).integers(0, 256, (*size[::-1], 3), dtype=np.uint8))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"options": Options(fusion="sum")}, "There is no fusion 'sum'"),
        ({"options": FUSED, "method": "saliency"}, "looks at no layer, so there is nothing to fuse"),
        ({"layers": ("first", "second")}, "Several layers make one map by a fusion"),
    ],
)
def test_what_means_nothing_together_is_no_request(asked: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        MapRequest(**asked)  # type: ignore[arg-type]


def test_a_request_finds_its_layers_at_a_size(net: Net) -> None:
    spec = MapRequest(layers=("first", "second"), options=FUSED).at(net, (3, 12, 16))
    assert [(layer.path, layer.grid) for layer in spec.layers] == [("first", (12, 16)), ("second", (6, 8))]
    # Of another size by name: a proposal is of one.
    assert spec.request.by_name.layers == spec.layer_texts == ("first:0", "second:0")
    assert [layer.grid for layer in spec.request.by_name.at(net, (3, 8, 8)).layers] == [(8, 8), (4, 4)]
    (place,) = MapRequest(method="saliency", layers=("first",)).at(net, (3, 12, 16)).layers
    assert (place.path, place.grid) == ("", (12, 16))
    (suggested,) = MapRequest().at(net, (3, 12, 16)).layers
    assert suggested.rank == 1


@pytest.mark.parametrize(
    "asked",
    [{}, {"method": "saliency"}, {"layers": ("first", "second"), "options": Options(fusion="product", augmented=True)}],
)
def test_an_explanation_says_what_makes_it_again(net: Net, asked: dict[str, object]) -> None:
    made = explain(net, _picture(0), preprocessing=STEPS, **asked)  # type: ignore[arg-type]
    batch, _ = prepare(_picture(0), STEPS)
    spec = MapSpec.of(made)
    assert (spec.make(net, batch).maps.heat[0].numpy() == made.heat).all()
    assert spec == MapSpec.of(made) and hash(spec) == hash(MapSpec.of(made))  # its own key


def test_a_backward_costs_two_and_copies_cost_as_often(net: Net) -> None:
    batch, _ = prepare(_picture(0), STEPS)
    layers = MapRequest(layers=("first", "second"), options=FUSED).at(net, (3, 12, 16)).layers
    seen = look(net, batch, layers)
    every = Options(fusion="mean", augmented=True)
    assert seen.cost(MapSpec(method="grad-cam", layers=layers, options=FUSED)) == (0, 0.0)
    passes, seconds = seen.cost(MapSpec(method="grad-cam", layers=layers, options=every))
    assert passes == 2 * AUGMENTED_MAPS * (1 + 2)
    assert seconds == pytest.approx(passes * seen.forward_seconds)
    assert seen.cost(MapSpec(method="score-cam", layers=layers, options=FUSED))[0] == 4 + 6  # their channels
    one = MapSpec(method="grad-cam", layers=layers[:1])
    assert seen.seconds_of_one(one) == pytest.approx(3 * seen.forward_seconds)


def _pictures(folder: Path) -> list[Path]:
    paths = [folder / f"{number}.png" for number in range(4)]
    for number in (0, 1, 3):
        _picture(number).save(paths[number])
    paths[2].write_bytes(b"no picture")
    return paths


def test_several_pictures_have_a_map_or_a_grid_each_and_what_cannot_be_read_is_said(net: Net, tmp_path: Path) -> None:
    paths, setting = _pictures(tmp_path), Setting(preprocessing=STEPS)
    one_each = list(explain_pictures(net, paths, Axes(layers=("second",)), setting, options=PLAIN))
    # The broken one is met while pictures are gathered for one forward.
    assert [maps.number for maps in one_each] == [2, 0, 1, 3]
    assert isinstance(one_each[0].error, InspectorError) and one_each[0].picture is None
    for maps in one_each[1:]:
        (((made,),),) = maps.cells
        alone = explain(net, _picture(maps.number), preprocessing=STEPS, layer="second")
        assert made is not None
        np.testing.assert_allclose(made.raw, alone.raw, rtol=1e-5, atol=1e-8)
    axes = Axes(layers=("second",), methods=("grad-cam", "le-grad"), classes=(0, 2))
    grids = list(explain_pictures(net, paths, axes, setting, options=PLAIN))
    assert [maps.number for maps in grids] == [0, 1, 2, 3]
    first = grids[0]
    assert [[[cell is not None for cell in row] for row in rows] for rows in first.cells] == [[[True, False]]] * 2
    assert [(method, layer) for method, layer, _ in first.refused] == [("le-grad", "second")]
    with pytest.raises(UsageError, match="one method and one class"):
        list(explain_pictures(net, paths, axes, setting, options=FUSED))
    with pytest.raises(ExplainError):
        list(explain_pictures(net, paths[2:3], Axes(), setting, options=PLAIN))
