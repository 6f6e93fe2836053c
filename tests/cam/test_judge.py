"""Every method's empty map says that it is empty and why, also where no gradient or no layer is read."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from inspector.cam.explain import explain
from inspector.cam.methods import METHODS
from inspector.cam.report import Explanation, Options, Preprocessing
from inspector.cam.targets.answers import AnswerKind
from inspector.errors import ExplainError

PLAIN = Preprocessing(
    resize=None, crop=None, mean=(0.0,) * 3, std=(1.0,) * 3, channels=3, interpolation="bilinear", source="",
    assumed=False,
)  # fmt: skip
OF_ATTENTION = ("attention-rollout", "gradient-rollout", "le-grad")
NAMES = [method.id for method in METHODS if method.id not in OF_ATTENTION]


class Net(nn.Module):
    """conv -> ReLU -> mean -> linear, all weights positive: class 0 is brightness, class 1 its opposite."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3, padding=1, bias=False)
        self.relu = nn.ReLU()
        self.head = nn.Linear(2, 2, bias=False)
        with torch.no_grad():
            self.conv.weight.fill_(0.1)
            self.head.weight.copy_(torch.tensor([[1.0, 0.5], [-1.0, -0.5]]))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.relu(self.conv(x)).mean(dim=(2, 3)))


@pytest.fixture
def noise() -> Image.Image:
    return Image.fromarray(np.random.default_rng(1).integers(20, 256, (12, 14, 3), dtype=np.uint8))


def told(found: Explanation) -> str:
    (finding,) = found.findings
    assert finding.remedy
    assert "''" not in finding.says
    assert "output of ," not in finding.says
    return f"{finding.id}: {finding.says}"


def ask(model: nn.Module, shown: Image.Image, method: str, target: int | None = 0) -> Explanation:
    return explain(model, shown, preprocessing=PLAIN, layer="relu", method=method, target=target)


# Both channels of Net are the same, so Score-CAM weighs them alike, and says so.
@pytest.mark.parametrize("method", [name for name in NAMES if name != "score-cam"])
def test_a_map_that_shows_something_has_no_finding(noise: Image.Image, method: str) -> None:
    # The counterfactual speaks where the class is pushed down.
    found = ask(Net(), noise, method, target=1 if method == "counterfactual" else 0)
    assert found.findings == ()
    assert found.heat.max() > 0


def _of_brightness(weight: float) -> nn.Module:
    """Net with channels that see red and blue, and a score of `weight` times red."""
    model = Net()
    with torch.no_grad():
        model.conv.weight.zero_()
        model.conv.weight[0, 0, 1, 1] = model.conv.weight[1, 2, 1, 1] = 1.0
        model.head.weight.copy_(torch.tensor([[weight, 0.0], [0.0, 0.0]]))
    return model


@pytest.mark.parametrize(("weight", "alike"), [(1.0, False), (100.0, False), (0.0, True), (1e-4, True), (1e-12, True)])
def test_score_cam_of_a_score_that_no_mask_changes_is_said(noise: Image.Image, weight: float, alike: bool) -> None:
    found = ask(_of_brightness(weight), noise, "score-cam")
    assert [finding.id for finding in found.findings] == (["equal-weights"] if alike else [])
    if alike:
        assert "weighs all channels of relu alike" in told(found)


@pytest.mark.parametrize("end", [nn.InstanceNorm2d(2), nn.GroupNorm(2, 2)])
def test_score_cam_before_a_norm_that_takes_the_mean_out_is_said(noise: Image.Image, end: nn.Module) -> None:
    model = _of_brightness(1.0)
    model.relu = nn.Sequential(nn.ReLU(), end)
    found = explain(model, noise, preprocessing=PLAIN, layer="relu.0", method="score-cam", target=0)
    assert [finding.id for finding in found.findings] == ["equal-weights"]


@pytest.mark.parametrize("method", [name for name in NAMES if name not in ("eigen-cam", "score-cam")])
def test_a_head_of_zeros_is_an_empty_map_of_every_method(noise: Image.Image, method: str) -> None:
    """EigenCAM does not look at the head, and Score-CAM weighs all channels alike: both still show the layer."""
    model = Net()
    nn.init.zeros_(model.head.weight)
    found = ask(model, noise, method)
    assert found.heat.max() == 0
    words = told(found)
    if method in ("cam", "ablation-cam", "occlusion"):
        assert words.startswith("constant-map: The map is constant: no ")
    else:
        assert words.startswith("zero-gradient-map")
        assert "The weights of head are all 0" in words


@pytest.mark.parametrize("method", NAMES)
def test_a_picture_that_reaches_nothing_is_said_by_every_method(method: str) -> None:
    """All units cut off: nothing is active, and no gradient passes."""
    model = Net()
    nn.init.constant_(model.conv.weight, -1.0)
    found = ask(model, Image.new("RGB", (12, 12), (90, 90, 90)), method)
    assert found.heat.max() == 0
    assert told(found).startswith(("zero-gradient-map", "constant-map"))


@pytest.mark.parametrize("method", NAMES)
def test_a_broken_model_is_named_by_every_method(noise: Image.Image, method: str) -> None:
    model = Net()
    with torch.no_grad():
        model.conv.weight[0, 0, 0, 0] = float("nan")
    try:
        found = ask(model, noise, method)
    except ExplainError:
        assert method == "cam"  # it cannot be known to be one
        return
    assert np.isfinite(found.heat).all()
    words = told(found)
    assert "non-finite-map" in words
    assert "the first is conv.weight" in words


@pytest.mark.parametrize("method", ["grad-cam", "hires-cam", "xgrad-cam", "cam", "ablation-cam", "occlusion"])
def test_all_negative_of_methods_with_and_without_gradient(noise: Image.Image, method: str) -> None:
    found = ask(Net(), noise, method, target=1)
    assert "all-negative-map" in told(found)
    assert found.raw_maximum <= 0
    assert found.negative_share == 1.0


@pytest.mark.parametrize("method", ["grad-cam++", "layer-cam", "element-wise", "guided-grad-cam", "smooth-grad-cam++"])
def test_methods_that_keep_the_positive_alone_say_that_nothing_is(noise: Image.Image, method: str) -> None:
    words = told(ask(Net(), noise, method, target=1))
    assert words.startswith(("constant-map", "zero-gradient-map"))
    assert "class 1" in words


def test_a_fusion_names_the_layer_that_is_empty_and_the_places_that_are_not_shared(noise: Image.Image) -> None:
    fused = {"preprocessing": PLAIN, "layers": ("conv", "relu"), "options": Options(fusion="product")}
    assert [f.id for f in explain(Net(), noise, target=1, **fused).findings] == ["all-negative-map"] * 2
    assert explain(Net(), noise, target=0, **fused).findings == ()


@pytest.mark.parametrize(("contrast", "is_even"), [(4, True), (120, False)])
def test_a_map_that_is_nearly_even_tells_no_place(contrast: int, is_even: bool) -> None:
    # Grey, and noise about it. Without its border, where the padding is colder.
    net = Net()
    net.conv.padding = (0, 0)
    values = np.random.default_rng(2).integers(128 - contrast, 128 + contrast, (12, 14, 3), dtype=np.uint8)
    found = ask(net, Image.fromarray(values), "grad-cam")
    if not is_even:
        assert found.findings == ()
        return
    words = told(found)
    assert words.startswith("even-map: The map is nearly even: all 120 cells of Grad-CAM have 9")
    share = found.raw_minimum / found.raw_maximum
    assert dict(found.findings[0].evidence)["coldest_share"] == pytest.approx(share, abs=1e-6) and 0.9 <= share < 1


def scaled(by: float) -> Net:
    model = Net()
    with torch.no_grad():
        model.head.weight.mul_(by)
    return model


def test_a_map_of_an_answer_that_tells_no_class_says_so(noise: Image.Image) -> None:
    assert told(ask(scaled(1e-5), noise, "grad-cam")).startswith(
        "even-answer: The model gives each of 2 classes 50 %: it tells none from another"
    )
    assert ask(scaled(1.0), noise, "grad-cam").findings == ()


def test_plain_numbers_that_are_alike_are_no_classes(noise: Image.Image) -> None:
    found = explain(scaled(1e-5), noise, preprocessing=PLAIN, layer="conv", target=0, answer=AnswerKind.NUMBERS)
    assert found.findings == ()
