"""Grids, fusion, augmentation, several sizes, pixels and boxes: the reports that faces are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from inspector.cam.costs import estimate
from inspector.cam.describe import Setting
from inspector.cam.engine.combine import augmented_maps
from inspector.cam.engine.maps import Axes, heat_maps
from inspector.cam.explain import explain, explain_many
from inspector.cam.grid import explain_grid
from inspector.cam.layers.proposals import find_layer
from inspector.cam.live import look
from inspector.cam.methods import METHODS
from inspector.cam.report import Crop, Options, Preprocessing
from inspector.cam.spec import MapRequest
from inspector.cam.targets.questions import OfBox, OfPixels, in_input, in_picture
from inspector.cam.targets.readings import BoxScore, PixelScores
from inspector.cli.explaining import question_of
from inspector.errors import ExplainError, TargetOutOfRange, UsageError

PLAIN = Preprocessing(
    resize=None, crop=None, mean=(0.0,) * 3, std=(1.0,) * 3, channels=3, interpolation="bilinear", source="",
    assumed=False,
)  # fmt: skip
SETTING = Setting(preprocessing=PLAIN)
SECOND = MapRequest(layers=("second",))


class Net(nn.Module):
    """Two stages, a pooled linear head; counts its forwards."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.ReLU(inplace=True))
        self.second = nn.Sequential(nn.Conv2d(4, 6, 3, stride=2, padding=1), nn.ReLU(inplace=True))
        self.head = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.second(self.first(x)).mean(dim=(2, 3)))


@pytest.fixture
def net() -> Net:
    torch.manual_seed(4)
    return Net().eval()


@pytest.fixture
def small(picture: Image.Image) -> Image.Image:
    return picture.resize((40, 32))


def test_a_grid_of_classes_layers_and_methods_is_what_each_is_alone(net: Net, small: Image.Image) -> None:
    layers, methods, targets = ("second", "first"), ("grad-cam", "finer-cam", "saliency"), (3, 0, None)
    with mock.patch.object(Net, "forward", autospec=True, side_effect=Net.forward) as forward:
        grid = explain_grid(net, small, Axes(layers=layers, methods=methods[:2], classes=targets), SETTING)
        traced = 2  # each layer by name
        assert forward.call_count == 1 + traced
    grid = explain_grid(net, small, Axes(layers=layers, methods=methods, classes=targets), SETTING)
    assert [t.index for t in grid.targets] == [3, 0, grid.scores[0].index]
    for score, rows in zip(grid.targets, grid.cells, strict=True):
        for layer, row in zip(layers, rows, strict=True):
            for method, cell in zip(methods, row, strict=True):
                assert cell is not None
                alone = explain(net, small, preprocessing=PLAIN, layer=layer, target=score.index, method=method)
                np.testing.assert_allclose(cell.raw, alone.raw, rtol=1e-5, atol=1e-8)
                assert cell.target == score
                assert cell.layer.path == ("" if method == "saliency" else layer)
    assert grid.refused == ()
    assert len(grid.maps) == 18


def test_a_method_without_a_map_is_an_empty_cell_with_its_reason(net: Net, small: Image.Image) -> None:
    axes = Axes(layers=("second", "first"), methods=("cam", "le-grad", "grad-cam"))
    grid = explain_grid(net, small, axes, SETTING)
    assert [[cell is None for cell in row] for row in grid.cells[0]] == [[False, True, False], [True, True, False]]
    assert [(m, layer) for m, layer, _ in grid.refused] == [
        ("le-grad", "second"),
        ("cam", "first"),
        ("le-grad", "first"),
    ]
    assert "CAM needs a network whose answer is one linear layer" in grid.refused[1][2]
    with pytest.raises(ExplainError):
        explain_grid(net, small, Axes(methods=("le-grad",)), SETTING)
    with pytest.raises(TargetOutOfRange, match="no class 7"):
        explain_grid(net, small, Axes(classes=(1, 7)), SETTING)


def test_a_grid_smooths_and_seeds_each_cell(net: Net, small: Image.Image) -> None:
    for options in (Options(augmented=True), Options(eigen_smooth=True), Options(seed=7)):
        axes = Axes(layers=("second",), methods=("grad-cam", "smooth-grad"), classes=(2,))
        grid = explain_grid(net, small, axes, SETTING, options=options)
        for cell in grid.maps:
            alone = explain(
                net, small, preprocessing=PLAIN, layer="second", method=cell.method, options=options, target=2
            )
            np.testing.assert_allclose(cell.raw, alone.raw, rtol=1e-5, atol=1e-8)
            plain = explain(net, small, preprocessing=PLAIN, layer="second", method=cell.method, target=2)
            same = np.allclose(plain.raw, cell.raw, rtol=1e-5)
            # Eigen smoothing is of layers, a seed of methods that draw.
            quiet = (options.eigen_smooth and cell.method == "smooth-grad") or (
                options.seed and cell.method == "grad-cam"
            )
            assert same == bool(quiet)
            assert cell.options == options


def test_fusion_is_the_mean_of_the_layers_own_heat(net: Net, small: Image.Image) -> None:
    both = [
        explain(net, small, preprocessing=PLAIN, layer=name, method="eigen-cam").heat for name in ("second", "first")
    ]
    for how, made in (("mean", np.mean(both, axis=0)), ("product", np.prod(both, axis=0))):
        found = explain(
            net, small, preprocessing=PLAIN, layers=("second", "first"), method="eigen-cam", options=Options(fusion=how)
        )
        np.testing.assert_allclose(found.heat, made / made.max(), atol=1e-6)
        assert [layer.path for layer in found.layers] == ["second", "first"]
        assert found.layer.reason == f"The {how} of the maps of 2 layers."
    with pytest.raises(UsageError, match="by a fusion"):
        explain(net, small, preprocessing=PLAIN, layers=("second", "first"))
    with pytest.raises(UsageError, match="takes several"):
        explain(net, small, preprocessing=PLAIN, layer="second", options=Options(fusion="mean"))
    with pytest.raises(UsageError, match="looks at no layer"):
        explain(net, small, preprocessing=PLAIN, method="saliency", options=Options(fusion="mean"))


def test_pictures_of_many_sizes_one_by_one_hold_no_more_than_a_batch(net: Net, picture: Image.Image) -> None:
    sizes = [(40, 32), (40, 32), (40, 32), (50, 24), (40, 32), (24, 24)]
    pictures = [picture.resize(size) for size in sizes]
    alive = []

    def some() -> Iterator[Image.Image]:
        for number, one in enumerate(pictures):
            alive.append(number)
            yield one

    made = explain_many(net, some(), SECOND, SETTING, targets=2, batch_size=2)
    first = next(made)
    assert alive == [0, 1, 2]  # not all of them
    found = [first, *made]
    for one, each in zip(pictures, found, strict=True):
        alone = explain(net, one, preprocessing=PLAIN, layer="second", target=2)
        np.testing.assert_allclose(each.heat, alone.heat, atol=1e-6)
        assert each.heat.shape == one.size[::-1]
        assert (each.crop.picture_width, each.crop.picture_height) == one.size
    resized = Setting(preprocessing=replace(PLAIN, resize=32, crop=(24, 24)))
    widths = {one.crop.width for one in explain_many(net, pictures, SECOND, resized)}
    assert len(widths) == 3  # one model input, three geometries


def test_a_proposal_of_one_size_serves_the_others(net: Net, picture: Image.Image) -> None:
    pictures = [picture.resize((40, 32)), picture.resize((24, 24))]
    proposal = explain(net, pictures[0], preprocessing=PLAIN, layer="second").layer
    found = list(explain_many(net, pictures, MapRequest(layers=(proposal,)), SETTING))
    assert [one.layer.grid for one in found] == [(8, 10), (6, 6)]


class Halves(nn.Module):
    """A segmentation whose class is which half of the picture a pixel lies in, scored by brightness."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3, padding=1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        scores = self.conv(x)
        side = torch.linspace(1, -1, x.shape[3])[None, None, None, :] * torch.tensor([1.0, -1.0])[None, :, None, None]
        return {"out": scores + 100 * side}


def test_pixels_are_mirrored_with_the_picture(small: Image.Image) -> None:
    """The mask lies in the picture; in a mirrored copy the thing lies on the other side."""
    torch.manual_seed(0)
    model = Halves().double()
    batch = torch.rand(1, 3, 8, 12, dtype=torch.float64)
    read = PixelScores.of_class(model(batch), 0)
    assert read.masks[0, :, :6].all()
    assert not read.masks[0, :, 6:].any()
    moved = read.mirrored(12)
    assert torch.equal(moved.masks, read.masks.flip(2))
    seen: list[Tensor] = []

    def spy(*args: object, **kwargs: object) -> object:
        seen.append(kwargs["read"].masks)  # type: ignore[attr-defined]
        return heat_maps(*args, **kwargs)  # type: ignore[arg-type]

    with mock.patch("inspector.cam.engine.combine.heat_maps", side_effect=spy):
        augmented_maps(model, batch, layer="conv", targets=0, read=read)
    assert [bool(masks[0, 0, 0]) for masks in seen] == [True, True, False, True, False, True, False]
    box = BoxScore(torch.tensor([[1.0, 2.0, 5.0, 6.0]]), [1]).mirrored(12)
    assert box.boxes.tolist() == [[7.0, 2.0, 11.0, 6.0]]


def test_pixels_of_a_class_are_asked_of_each_batch(small: Image.Image) -> None:
    torch.manual_seed(0)
    model = Halves()
    setting = Setting(preprocessing=PLAIN, question=OfPixels(1))
    found = list(explain_many(model, [small, small], MapRequest(layers=("conv",)), setting))
    assert [one.asked for one in found] == ["pixels of class 1"] * 2
    assert found[0].target.index == 1
    with pytest.raises(UsageError, match="says the class already"):
        explain(model, small, preprocessing=PLAIN, layer="conv", question=OfPixels(1), target=1)
    with pytest.raises(TargetOutOfRange, match="2 classes"):
        explain(model, small, preprocessing=PLAIN, layer="conv", question=OfPixels(2))


class Detector(nn.Module):
    """Two boxes: the left half of the input (label 1), the right half (label 2); scored by their brightness."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 1, 1, bias=False)
        nn.init.constant_(self.conv.weight, 1 / 3)

    def forward(self, x: Tensor) -> list[dict[str, Tensor]]:
        grey = self.conv(x)[:, 0]
        height, width = grey.shape[1:]
        boxes = torch.tensor([[0.0, 0, width / 2, height], [width / 2, 0, width, height]])
        halves = [torch.stack([one[:, : width // 2].mean(), one[:, width // 2 :].mean()]) for one in grey]
        return [{"boxes": boxes, "labels": torch.tensor([1, 2]), "scores": scores} for scores in halves]


def test_a_box_is_given_in_the_pictures_own_pixels() -> None:
    pixels = np.zeros((40, 80, 3), dtype=np.uint8)
    pixels[:, :40], pixels[:, 40:] = 100, 200
    shown = Image.fromarray(pixels)
    halved = replace(PLAIN, resize=(20, 40))
    ask = {"preprocessing": halved, "layer": "conv", "categories": ("nothing", "left", "right")}
    surest = explain(Detector(), shown, question=OfBox(), **ask)
    assert surest.asked == "box 40,0,80,40 of class 2"
    assert surest.place == pytest.approx((40, 0, 80, 40))
    assert (surest.target.name, surest.target.index) == ("right", 2)
    assert surest.target.probability == pytest.approx(200 / 255, abs=5e-3)
    assert surest.scores == (surest.target,)
    second = explain(Detector(), shown, question=OfBox(rank=2), **ask)
    assert second.target.name == "left"
    given = explain(Detector(), shown, question=OfBox(corners=(2, 1, 40, 40)), **ask)
    assert given.target.name == "left"
    assert given.place == pytest.approx((2, 1, 40, 40))
    for question in (
        OfBox(rank=3),
        OfBox(corners=(20, 0, 60, 40), label=3),
        OfBox(corners=(0, 0, 4, 4)),
        OfBox(label=5),
    ):
        with pytest.raises(ExplainError, match="detector finds"):
            explain(Detector(), shown, question=question, **ask)
    with pytest.raises(UsageError, match="left < right"):
        explain(Detector(), shown, question=OfBox(corners=(9, 0, 3, 4)), **ask)
    with pytest.raises(UsageError, match="lies outside the picture"):
        explain(Detector(), shown, question=OfBox(corners=(5000, 0, 5010, 4)), **ask)


@pytest.mark.parametrize(
    ("corners", "says"),
    [
        ((3, 3, 3, 9), "has no area"),
        ((3, 9, 8, 9), "has no area"),
        ((9, 0, 3, 4), "has its corners swapped"),
        ((0, 9, 3, 4), "has its corners swapped"),
        ((0, 0, float("nan"), 4), "not finite"),
        ((0, 0, float("inf"), 4), "not finite"),
    ],
)
def test_a_box_that_is_none_is_refused_in_words(corners: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        OfBox(corners=corners)
    with pytest.raises(UsageError, match=says):
        question_of(None, ",".join(map(str, corners)))


class Degenerate(Detector):
    """Its surest box has no height."""

    def forward(self, x: Tensor) -> list[dict[str, Tensor]]:
        found = super().forward(x)
        for one in found:
            one["boxes"] = torch.cat([one["boxes"][:, :3], one["boxes"][:, 1:2]], dim=1)
        return found


def test_a_box_of_the_detectors_own_without_area_is_refused_on_the_page_and_off_it() -> None:
    picture = torch.rand(1, 3, 40, 40) + 0.2
    layer = find_layer(Degenerate(), "conv", (3, 40, 40))
    with pytest.raises(ExplainError, match="Box 1 that the detector finds has no area"):
        look(Degenerate(), picture, [layer]).map("grad-cam", layer, 0)
    shown = Image.fromarray(np.full((40, 40, 3), 99, dtype=np.uint8))
    with pytest.raises(ExplainError, match="Box 1 that the detector finds has no area"):
        explain(Degenerate(), shown, preprocessing=PLAIN, layer="conv", question=OfBox())


class TwoScales(Detector):
    """As the detector; its boxes come from the first map, the coarser one reaches none of them."""

    def __init__(self) -> None:
        super().__init__()
        self.coarse = nn.Conv2d(3, 2, 3, stride=4)

    def forward(self, x: Tensor) -> list[dict[str, Tensor]]:
        self.coarse(x)
        return super().forward(x)


def test_a_box_that_a_layer_does_not_reach_names_the_other_scales() -> None:
    shown = Image.fromarray(np.full((40, 80, 3), 100, dtype=np.uint8))
    (finding,) = explain(TwoScales(), shown, preprocessing=PLAIN, layer="coarse", question=OfBox()).findings
    assert finding.id == "zero-gradient-map"
    assert "finer maps" in finding.remedy
    (finding,) = explain(
        TwoScales(), shown, preprocessing=PLAIN, question=OfBox(), layers=("coarse", "coarse:0"),
        options=Options(fusion="mean"),
    ).findings[:1]  # fmt: skip
    assert "finer maps" in finding.remedy


def test_boxes_go_there_and_back() -> None:
    crop = Crop(left=10, top=20, width=100, height=50, picture_width=200, picture_height=90)
    assert in_input((10, 20, 60, 45), crop, (25, 50)) == (0, 0, 25, 12.5)
    assert in_picture(in_input((11, 22, 63, 44), crop, (25, 50)), crop, (25, 50)) == pytest.approx((11, 22, 63, 44))


def test_the_estimate_counts_what_is_run(net: Net, small: Image.Image) -> None:
    cheap = estimate(net, small, Axes(methods=("grad-cam", "layer-cam"), most_layers=1), SETTING)
    assert cheap.passes == 3  # one forward and one backward for both
    assert dict(cheap.by_method) == {"grad-cam": 0, "layer-cam": 0}
    axes = Axes(layers=("second", "first"), methods=("score-cam",), classes=(0, 1))
    slow = estimate(net, small, axes, SETTING)
    assert dict(slow.by_method) == {"score-cam": 2 * (6 + 4)}  # channels of both layers
    assert slow.seconds > 0
    ran = 0

    def count(*_: object) -> None:
        nonlocal ran
        ran += 1

    axes = Axes(methods=tuple(m.id for m in METHODS), most_layers=1)
    explain_grid(net, small, axes, SETTING, progress=count)
    assert ran > 0
