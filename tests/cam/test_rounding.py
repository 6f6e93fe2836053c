"""Maps whose numbers mean nothing say so: terms that cancel to rounding, a map lost in its score, hardly anything
positive. And maps that mean something are left alone, at every scale and in every precision."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image
from torch import Tensor, nn

from inspector.cam.describe import Setting
from inspector.cam.engine.maps import Axes
from inspector.cam.engine.rounding import rounding_share, score_share
from inspector.cam.explain import explain, explain_many
from inspector.cam.grid import explain_grid
from inspector.cam.method import Unit
from inspector.cam.methods import METHODS, method_named
from inspector.cam.report import Explanation, Preprocessing
from inspector.cam.spec import MapRequest

PRECISIONS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
OF_ATTENTION = ("attention-rollout", "gradient-rollout", "le-grad")
# What the map says of the layer alone, whatever the score.
OF_THE_LAYER = ("eigen-cam", "score-cam")


def steps(size: int) -> Preprocessing:
    return Preprocessing(
        resize=size, crop=(size, size), mean=(0.5,) * 3, std=(0.5,) * 3, channels=3, interpolation="bilinear",
        source="", assumed=False,
    )  # fmt: skip


@pytest.fixture
def noise() -> Image.Image:
    return Image.fromarray(np.random.default_rng(1).integers(20, 256, (32, 32, 3), dtype=np.uint8))


class Net(nn.Module):
    """Two convolutions with a norm behind each, a mean, a head. last: what is done to the answer."""

    def __init__(
        self, norm: type[nn.Module] | nn.Module = nn.BatchNorm2d, *, scale: float = 1.0, sure: float = 0
    ) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        self.norm1 = norm(16)  # type: ignore[operator]
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, stride=2)
        self.norm2 = norm(32)  # type: ignore[operator]
        self.relu = nn.ReLU()
        self.head = nn.Linear(32, 5)
        self.scale, self.sure = scale, sure

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.norm1(self.conv1(x)))
        x = self.relu(self.norm2(self.conv2(x)))
        scores = self.head(x.mean(dim=(2, 3))) * self.scale
        return torch.softmax(self.sure * scores, dim=1) if self.sure else scores


class OverChannels(nn.Module):
    """LayerNorm over the channels of a map."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return found


def ids(found: Explanation) -> list[str]:
    return [finding.id for finding in found.findings]


def test_the_bound_is_as_many_roundings_as_there_are_channels() -> None:
    """Two channels whose terms are 1 and -1 + 2^-24: they add up to 2^-24, and may be off by 2 x 2^-24 x 2."""
    method = method_named("hires-cam")
    activation = torch.ones(1, 2, 1, 1)
    gradient = torch.tensor([1.0, -1.0 + 2**-24])[None, :, None, None]
    added = (activation * gradient).sum(dim=1)
    share = rounding_share(method, activation, gradient, added, stored=torch.float32)
    assert added.item() == 2**-24
    assert share.item() == pytest.approx(4, rel=1e-6)
    # Ten times the numbers, the same share; in float64 it is far from rounding.
    share = rounding_share(method, 10 * activation, gradient, 10 * added, stored=torch.float32)
    assert share.item() == pytest.approx(4, rel=1e-6)
    exact = rounding_share(method, activation.double(), gradient.double(), added.double(), stored=torch.float64)
    assert exact.item() == pytest.approx(4 * 2**-29, rel=1e-6)
    empty = rounding_share(method, activation, 0 * gradient, 0 * added, stored=torch.float32)
    assert math.isnan(empty.item())


def test_numbers_that_came_in_half_precision_are_off_by_more() -> None:
    """Two channels of Grad-CAM whose gradients 1 and -1 + d are d/2 on average: each is off by eps times (2 - d)/2."""
    method = method_named("grad-cam")
    activation = torch.ones(1, 2, 1, 2)
    d = 2**-6
    gradient = torch.tensor([[1.0, -1.0 + d], [-1.0 + d, 1.0]])[None, :, None, :]
    added = (gradient.mean(dim=(2, 3), keepdim=True) * activation).sum(dim=1)
    assert added.max().item() == d
    share = rounding_share(method, activation, gradient, added, stored=torch.bfloat16)
    size = (2 - d) / 2
    bound = 2 * 2**-24 * (2 * size) + 2 * 2**-7 * math.sqrt(2 * size**2)
    assert share.item() == pytest.approx(bound / d, rel=1e-6)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (Unit.PARTS, 10 / 4),  # 1 + 2 + 3 + 4
        (Unit.MEAN, 2.5 / 4),
        (Unit.FALLS, 4 / 4),
        (Unit.SLOPES, 10 * 0.5 / 4),
        (Unit.SHARES, 4 / 0.5),  # a share of the score already, times activations of at most 0.5
        (Unit.NONE, None),
    ],
)
def test_the_share_of_a_score(unit: Unit, expected: float | None) -> None:
    raw = torch.tensor([[1.0, -2.0], [3.0, -4.0]])
    assert score_share(raw, unit, -4.0, 0.5) == expected
    assert score_share(raw, unit, 0.0, 0.5) is None


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("method", ["grad-cam", "finer-cam", "counterfactual", "guided-grad-cam"])
def test_gradients_that_a_norm_takes_out_leave_rounding(
    noise: Image.Image, method: str, precision: torch.dtype
) -> None:
    """The gradient in front of an instance norm adds up to 0 over the places: its mean is rounding and nothing else."""
    model = Net(nn.InstanceNorm2d).to(precision)
    found = explain(model, noise, preprocessing=steps(32), layer="conv2", method=method)
    (finding,) = found.findings
    assert finding.id == "rounding-map"
    assert "what the 32 channels of conv2 add cancels out" in finding.says
    assert float(dict(finding.evidence)["rounding_share"]) > 3
    assert "LayerCAM" in finding.remedy
    # What does not add up over places shows the layer, and behind the norm all do.
    assert ids(explain(model, noise, preprocessing=steps(32), layer="conv2", method="layer-cam")) == []
    assert ids(explain(model, noise, preprocessing=steps(32), layer="relu:1", method="grad-cam")) == []


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16, torch.float16])
def test_activations_that_a_layer_norm_takes_out_leave_rounding(precision: torch.dtype) -> None:
    """Gradient times activation in front of a layer norm adds up to 0 over each cell's channels, but for its epsilon:
    ConvNeXt's blocks are followed by one."""
    torch.manual_seed(0)
    model = torchvision.models.ConvNeXt(
        [torchvision.models.convnext.CNBlockConfig(48, 96, 1), torchvision.models.convnext.CNBlockConfig(96, None, 1)],
        num_classes=5,
    ).to(precision)
    picture = Image.fromarray(np.random.default_rng(3).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    asked = {"preprocessing": steps(64), "layer": "features.1"}
    assert ids(explain(model, picture, method="hires-cam", **asked)) == ["rounding-map"]
    assert ids(explain(model, picture, method="grad-cam", **asked)) == []
    assert ids(explain(model, picture, method="hires-cam", preprocessing=steps(64), layer="features.3")) == []


class Faint(nn.Module):
    """Scores of 0.03 that are biases, and a layer that adds -1e-7 in 99 of 100 cells to the first of them."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 1, 1, bias=False)
        self.head = nn.Linear(1, 2)
        self.scale = scale
        with torch.no_grad():
            self.conv.weight.fill_(1 / 3)
            self.head.weight.copy_(torch.tensor([[1e-5], [-1e-5]]))
            self.head.bias.copy_(torch.tensor([0.03, -0.03]))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.conv(x).mean(dim=(2, 3))) * self.scale


def nearly_dark() -> Image.Image:
    """10 x 10 pixels of -1 after preprocessing, one of +1."""
    pixels = np.zeros((10, 10, 3), dtype=np.uint8)
    pixels[4, 6] = 255
    return Image.fromarray(pixels)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_a_map_of_rounding_size_beside_its_score_is_said(scale: float) -> None:
    found = explain(Faint(scale), nearly_dark(), preprocessing=steps(10), layer="conv", target=0)
    # 1e-5 x -1 over 100 cells: -1e-7 each, 1e-5 in all beside 0.03.
    assert found.raw_minimum == pytest.approx(-1e-7 * scale)
    assert found.negative_share == pytest.approx(0.99)
    (finding,) = found.findings
    assert finding.id == "faint-map"
    evidence = dict(finding.evidence)
    assert evidence["share_of_score"] == pytest.approx(1e-5 / (0.03 - 0.98e-5), rel=1e-4)
    assert evidence["limit"] == pytest.approx(math.sqrt(2**-23))
    if scale == 1.0:
        assert "its numbers are 1e-07 at most and come to 0.00033 of it" in finding.says
        assert "The score is the bias of head, 0.03, whatever the picture shows." in finding.says
        assert "trained and all loaded" in finding.remedy


def test_the_same_numbers_are_no_rounding_where_they_are_the_score() -> None:
    model = Faint()
    nn.init.zeros_(model.head.bias)
    found = explain(model, nearly_dark(), preprocessing=steps(10), layer="conv", target=1)
    assert found.raw_maximum == pytest.approx(1e-7)
    # What is said is that so small a score tells no class from another.
    assert ids(found) == ["even-answer"]
    # And float64 keeps them.
    exact = explain(Faint().double(), nearly_dark(), preprocessing=steps(10), layer="conv", target=1)
    assert exact.findings == ()


def test_an_untrained_network_that_answers_with_its_biases_is_said_by_every_method(noise: Image.Image) -> None:
    torch.manual_seed(0)
    model = torchvision.models.shufflenet_v2_x0_5()
    methods = [m.id for m in METHODS if m.arithmetic and m.id not in OF_THE_LAYER] + ["cam", "saliency"]
    grid = explain_grid(model, noise, Axes(methods=methods, most_layers=2), Setting(preprocessing=steps(64)))
    assert len(grid.maps) == 2 * len(methods) - 1  # CAM is defined at the last layer
    assert {tuple(ids(one)) for one in grid.maps} == {("faint-map",)}
    assert "The score is the bias of fc, 0.03" in grid.maps[0].findings[0].says
    assert ids(explain(model, noise, preprocessing=steps(64), method="eigen-cam")) == []


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize("method", [m.id for m in METHODS if m.id not in OF_ATTENTION])
def test_a_map_that_shows_something_has_no_finding_at_any_scale(noise: Image.Image, method: str, scale: float) -> None:
    # CAM is of a head that answers itself.
    model = Net(scale=1.0 if method == "cam" else scale)
    found = explain(model, noise, preprocessing=steps(16), layer="relu:1", method=method)
    assert {"rounding-map", "faint-map"}.isdisjoint(ids(found))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_nor_in_any_precision(noise: Image.Image, precision: torch.dtype) -> None:
    methods = [m.id for m in METHODS if m.arithmetic]
    axes = Axes(methods=methods, layers=["conv1", "conv2", "relu:1"])
    grid = explain_grid(Net().to(precision), noise, axes, Setting(preprocessing=steps(32)))
    assert {"rounding-map", "faint-map"}.isdisjoint(name for one in grid.maps for name in ids(one))


def test_a_probability_that_is_one_but_for_rounding_is_said(noise: Image.Image) -> None:
    """The gradient of a softmax is p (1 - p): at 1.0 only what speaks for the others is left of it."""
    asked = {"preprocessing": steps(32), "layer": "relu:1"}
    for sure in (20, 60, 80):  # 0.92, 0.9999, 1 - 3e-6: 1 - p is small and known well
        found = explain(Net(sure=sure), noise, **asked)
        assert 0.9 < found.target.logit < 1
        assert found.findings == ()
    sure = explain(Net(sure=400), noise, **asked)
    assert sure.target.logit == 1.0
    (finding,) = sure.findings
    assert finding.id == "faint-map"
    assert "a softmax or sigmoid that is this sure passes next to nothing back" in finding.says
    silent = explain(Net(sure=1e4), noise, **asked)
    (finding,) = silent.findings
    assert finding.id == "zero-gradient-map"
    assert "without its last softmax" in finding.remedy


class Cells(nn.Module):
    """The score is the mean of the red channel: each cell adds its own value / 256."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 1, 1, bias=False)
        with torch.no_grad():
            self.conv.weight.copy_(torch.tensor([1.0, 0.0, 0.0])[None, :, None, None])

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x).mean(dim=(2, 3))


@pytest.mark.parametrize(("bright", "expected"), [(1, ["mostly-negative-map"]), (7, ["mostly-negative-map"]), (9, [])])
def test_a_map_with_hardly_anything_above_zero_is_said(bright: int, expected: list[str]) -> None:
    """256 cells of -1, some of them +1: 1, 7 and 9 of 256 are 0.4, 2.7 and 3.5 %."""
    pixels = np.zeros((16, 16, 3), dtype=np.uint8)
    pixels[0, :bright] = 255
    found = explain(Cells(), Image.fromarray(pixels), preprocessing=steps(16), layer="conv", target=0)
    assert found.negative_share == pytest.approx(1 - bright / 256)
    assert ids(found) == expected
    if bright == 1:
        assert "99.61 % of what Grad-CAM adds up is negative for class 0" in found.findings[0].says


def test_pictures_do_not_change_each_others_maps(noise: Image.Image) -> None:
    """A batch norm that keeps no statistics takes the batch's, in evaluation mode too."""

    def norm(channels: int) -> nn.Module:
        return nn.BatchNorm2d(channels, track_running_stats=False)

    model = Net(norm)  # type: ignore[arg-type]
    others = [Image.fromarray(np.random.default_rng(n).integers(0, 256, (32, 32, 3), dtype=np.uint8)) for n in (7, 8)]
    shown = [noise, *others]
    for method in ("hires-cam", "ablation-cam", "occlusion"):
        asked = {"preprocessing": steps(16), "layer": "relu:1", "method": method, "target": 0}
        alone = [explain(model, one, **asked) for one in shown]
        request, setting = MapRequest(method=method, layers=("relu:1",)), Setting(preprocessing=steps(16))
        together = list(explain_many(model, shown, request, setting, targets=0))
        for one, other in zip(alone, together, strict=True):
            assert np.array_equal(one.raw, other.raw)
    # One square of the picture covered, by hand: the fall of the score of that copy alone.
    asked = {"preprocessing": steps(5), "layer": None, "method": "occlusion", "target": 0}
    found = explain(model, noise, **asked)
    from inspector.cam.inputs.preprocess import prepare

    batch, _ = prepare(noise, steps(5))
    covered = batch.clone()
    covered[:, :, 2, 3] = 0
    model.eval()
    with torch.no_grad():
        fall = model(batch)[0, 0] - model(covered)[0, 0]
    assert found.raw[2, 3] == pytest.approx(float(fall), rel=1e-4)


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16])
def test_xgrad_cam_divides_by_no_sum_that_is_rounding(noise: Image.Image, precision: torch.dtype) -> None:
    """What an instance norm puts out adds up to 0 in each channel; in half precision to rounding, the divisor."""
    asked = {"preprocessing": steps(32), "layer": "norm2", "method": "xgrad-cam"}
    exact = explain(Net(nn.InstanceNorm2d), noise, **asked)
    half = explain(Net(nn.InstanceNorm2d).to(precision), noise, **asked)
    assert ids(exact) == ids(half) == ["constant-map"]
    assert np.abs(half.raw).max() <= abs(half.target.logit)
