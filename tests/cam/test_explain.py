"""One picture to one explanation, and what is said about maps that show nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image
from torch import Tensor, nn

from inspector.cam.describe import Setting, scores_of
from inspector.cam.explain import explain, explain_many
from inspector.cam.report import Explanation, Preprocessing
from inspector.cam.spec import MapRequest
from inspector.errors import NoSuchLayer, TargetOutOfRange, UsageError

PLAIN = Preprocessing(
    resize=None,
    crop=None,
    mean=(0.0, 0.0, 0.0),
    std=(1.0, 1.0, 1.0),
    channels=3,
    interpolation="bilinear",
    source="test",
    assumed=False,
)


class Bright(nn.Module):
    """Class 0 is the mean brightness, class 1 its opposite: the right map is known."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 1, 1, bias=False)
        self.head = nn.Linear(1, 2, bias=False)
        with torch.no_grad():
            self.conv.weight.fill_(1 / 3)
            self.head.weight.copy_(torch.tensor([[1.0], [-1.0]]))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.relu(self.conv(x)).mean(dim=(2, 3)))


@pytest.fixture
def spot() -> Image.Image:
    """Grey 51 (0.2), with one white pixel at row 2, column 5."""
    pixels = np.full((8, 10, 3), 51, dtype=np.uint8)
    pixels[2, 5] = 255
    return Image.fromarray(pixels)


def only_finding(explanation: Explanation) -> str:
    (finding,) = explanation.findings
    assert finding.remedy
    return f"{finding.id}: {finding.says}"


def test_every_field_of_a_map_known_by_hand(spot: Image.Image) -> None:
    model = Bright().train()
    found = explain(model, spot, preprocessing=PLAIN, layer="conv", categories=("bright", "dark"))
    assert (found.method, found.layer.path, found.target.name) == ("grad-cam", "conv", "bright")
    # One channel with mean gradient 1/80: the map is brightness / 80.
    assert found.raw_maximum == pytest.approx(1 / 80)
    assert found.raw_minimum == pytest.approx(0.2 / 80)
    assert found.negative_share == 0.0
    assert found.heat.dtype == np.float32
    assert found.heat.shape == (8, 10)
    assert found.heat[2, 5] == 1.0
    assert found.heat[0, 0] == pytest.approx(0.2)
    logit = (79 * 0.2 + 1) / 80
    assert [score.logit for score in found.scores] == pytest.approx([logit, -logit])
    assert found.scores[0].probability == pytest.approx(1 / (1 + np.exp(-2 * logit)))
    assert sum(score.probability for score in found.scores) == pytest.approx(1.0)
    assert found.findings == ()
    assert torch.__version__.startswith(dict(found.versions)["torch"].split("+")[0])
    assert model.training


def test_all_negative(spot: Image.Image) -> None:
    found = explain(Bright(), spot, preprocessing=PLAIN, layer="conv", target=1)
    assert "all-negative-map: All 80 cells of Grad-CAM are negative for class 1" in only_finding(found)
    assert found.negative_share == 1.0
    assert found.heat.max() == 0.0


def test_constant() -> None:
    grey = Image.new("RGB", (8, 8), (100, 100, 100))
    found = explain(Bright(), grey, preprocessing=PLAIN, layer="conv", target=0)
    assert "constant-map: The map is constant: every cell is 0.006127" in only_finding(found)
    black = explain(Bright(), Image.new("RGB", (8, 8)), preprocessing=PLAIN, layer="conv", target=0)
    assert black.heat.max() == 0.0
    assert "zero-gradient-map" in only_finding(black)  # ReLU of 0 lets nothing through


def test_zero_gradient_names_an_empty_head(spot: Image.Image) -> None:
    model = Bright()
    nn.init.zeros_(model.head.weight)
    found = explain(model, spot, preprocessing=PLAIN, layer="conv")
    assert "The weights of head are all 0" in only_finding(found)


def test_zero_gradient_names_dead_units(spot: Image.Image) -> None:
    model = Bright()
    nn.init.constant_(model.conv.weight, -1.0)
    found = explain(model, spot, preprocessing=PLAIN, layer="conv")
    assert "reaches the output of conv" in only_finding(found)


def test_non_finite_names_the_tensor(spot: Image.Image) -> None:
    model = Bright()
    with torch.no_grad():
        model.conv.weight[0, 0] = float("nan")
    found = explain(model, spot, preprocessing=PLAIN, layer="conv")
    assert "non-finite-map: 80 of 80 cells of the map are not finite" in only_finding(found)
    assert "1 tensor of the model holds NaN" in found.findings[0].says
    assert "conv.weight" in found.findings[0].says
    assert found.heat.max() == 0.0
    assert np.isfinite(found.heat).all()


@pytest.fixture(scope="module")
def vit() -> nn.Module:
    torch.manual_seed(0)
    model = torchvision.models.VisionTransformer(
        image_size=64, patch_size=16, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32, num_classes=4
    )
    nn.init.normal_(model.heads.head.weight)  # torchvision leaves it all 0
    return model


def test_vision_transformer_has_a_map(vit: nn.Module, picture: Image.Image) -> None:
    square = picture.resize((64, 64))
    found = explain(vit, square, preprocessing=PLAIN, target=2)
    assert found.layer.path == "encoder.layers.encoder_layer_1.ln_1"
    assert found.raw.shape == (4, 4)
    assert found.raw.std() > 0
    assert found.findings == () or found.findings[0].id == "all-negative-map"


def test_patches_behind_the_last_attention_have_no_gradient(vit: nn.Module, picture: Image.Image) -> None:
    found = explain(vit, picture.resize((64, 64)), preprocessing=PLAIN, layer="encoder.ln", target=2)
    assert "No patch behind encoder.ln reaches the answer: only the class token does" in only_finding(found)


def test_one_channel_and_a_small_picture() -> None:
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 1)
    )
    grey = Image.fromarray(np.random.default_rng(0).integers(0, 256, (28, 28), dtype=np.uint8))
    one = Preprocessing(
        resize=28, crop=(28, 28), mean=(0.5,), std=(0.5,), channels=1, interpolation="bilinear", source="", assumed=True
    )
    found = explain(model, grey, preprocessing=one)
    assert found.raw.shape == (13, 13)
    assert found.raw.std() > 0
    assert 0 < found.target.probability < 1  # one output is read as yes or no


def test_channels_last_gives_the_same_map(picture: Image.Image) -> None:
    torch.manual_seed(0)
    model = torchvision.models.get_model("shufflenet_v2_x0_5", weights=None, num_classes=4)
    expected = explain(model, picture, preprocessing=PLAIN, target=1)
    found = explain(model.to(memory_format=torch.channels_last), picture, preprocessing=PLAIN, target=1)
    assert np.abs(expected.heat - found.heat).max() < 1e-4
    assert expected.heat.max() > 0


def test_batch_is_the_single_ones(spot: Image.Image) -> None:
    other = Image.new("RGB", (10, 8), (255, 0, 0))
    setting = Setting(preprocessing=PLAIN)
    both = explain_many(Bright(), [spot, other], MapRequest(layers=("conv",)), setting, targets=[0, 1])
    for found, picture, target in zip(both, (spot, other), (0, 1), strict=True):
        alone = explain(Bright(), picture, preprocessing=PLAIN, layer="conv", target=target)
        assert np.array_equal(found.heat, alone.heat)
        assert found.target.index == target
    with pytest.raises(UsageError, match="1 targets were given for 2 pictures"):
        list(explain_many(Bright(), [spot, other], MapRequest(), setting, targets=[0]))


def test_wrong_questions(spot: Image.Image) -> None:
    with pytest.raises(TargetOutOfRange, match="2 classes, numbered 0 to 1; there is no class 2"):
        explain(Bright(), spot, preprocessing=PLAIN, target=2)
    with pytest.raises(TargetOutOfRange, match="no class -1"):
        explain(Bright(), spot, preprocessing=PLAIN, target=-1)
    with pytest.raises(NoSuchLayer, match=r"no layer 'convv'.*Close: conv"):
        explain(Bright(), spot, preprocessing=PLAIN, layer="convv")
    with pytest.raises(UsageError, match=r"no method 'gradcam'.*grad-cam"):
        explain(Bright(), spot, preprocessing=PLAIN, method="gradcam")


def test_scores_are_ordered_and_named_only_when_counts_agree() -> None:
    logits = torch.tensor([0.0, 2.0, float("nan"), 1.0])
    assert [score.index for score in scores_of(logits)] == [1, 3, 0, 2]
    assert scores_of(logits, ("a", "b", "c", "d"))[0].name == "b"
    assert scores_of(logits, ("a", "b"))[0].name is None
