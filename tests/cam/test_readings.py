"""Scores other than a class: pixels of a segmentation, a box of a detection; every method works on them."""

from __future__ import annotations

import pytest
import torch
import torchvision
from torch import Tensor, nn
from torchvision.models.detection.transform import GeneralizedRCNNTransform

from inspector.cam.engine.maps import heat_maps
from inspector.cam.engine.tensors import without_padding
from inspector.cam.layers.proposals import find_layer
from inspector.cam.methods import METHODS
from inspector.cam.targets.readings import (
    BoxScore,
    PixelScores,
    class_scores,
    detections,
    given_classes,
    overlaps,
    pixel_scores,
)
from inspector.errors import ExplainError, TargetOutOfRange


class Segmenter(nn.Module):
    """Two convolutions and an enlarged answer, as torchvision's are, in a mapping."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 5, 3, stride=2, padding=1), nn.ReLU(inplace=True))
        self.head = nn.Conv2d(5, 3, 1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        scores = self.head(self.body(x))
        return {"out": nn.functional.interpolate(scores, size=x.shape[2:], mode="bilinear", align_corners=False)}


@pytest.fixture
def model() -> Segmenter:
    torch.manual_seed(1)
    return Segmenter().double().eval()


@pytest.fixture
def batch() -> Tensor:
    return torch.randn(2, 3, 12, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def masks_of(*boxes: tuple[int, int, int, int]) -> Tensor:
    masks = torch.zeros(len(boxes), 12, 16, dtype=torch.bool)
    for mask, (top, bottom, left, right) in zip(masks, boxes, strict=True):
        mask[top:bottom, left:right] = True
    return masks


def test_pixels_of_a_segmentation_by_hand(model: Segmenter, batch: Tensor) -> None:
    masks = masks_of((0, 4, 0, 6), (5, 12, 8, 16))
    found = heat_maps(model, batch, layer="body", targets=[2, 0], read=PixelScores(masks))
    activation = model.body(batch).detach().requires_grad_()
    out = nn.functional.interpolate(model.head(activation), size=(12, 16), mode="bilinear", align_corners=False)
    score = out[0, 2][masks[0]].mean() + out[1, 0][masks[1]].mean()
    (gradient,) = torch.autograd.grad(score, [activation])
    expected = (gradient.mean(dim=(2, 3), keepdim=True) * activation).sum(dim=1)
    torch.testing.assert_close(found.raw, expected.detach())
    torch.testing.assert_close(found.logits[0], out[0, :, :4, :6].mean(dim=(1, 2)).detach())


def test_a_class_is_the_pixels_that_the_model_gives_it(model: Segmenter, batch: Tensor) -> None:
    answer = model(batch)
    reading = PixelScores.of_class(answer, 1)
    assert torch.equal(reading.masks, answer["out"].argmax(dim=1) == 1)
    with torch.no_grad():
        model.head.bias[0] = 1e6
    with pytest.raises(ExplainError, match="no pixel of picture 1 to class 2"):
        PixelScores.of_class(model(batch), 2)
    with pytest.raises(TargetOutOfRange, match="3 classes"):
        PixelScores.of_class(model(batch), 3)


@pytest.mark.parametrize(
    "method", [m.id for m in METHODS if m.id not in ("cam", "attention-rollout", "gradient-rollout", "le-grad")]
)
def test_every_method_explains_pixels(model: Segmenter, batch: Tensor, method: str) -> None:
    masks = masks_of((0, 4, 0, 6), (5, 12, 8, 16))
    both = heat_maps(model, batch, layer="body", method=method, targets=[2, 0], read=PixelScores(masks))
    assert torch.isfinite(both.raw).all()
    assert both.raw.abs().amax(dim=(1, 2)).min() > 0
    # Each picture of a batch has its own pixels.
    alone = heat_maps(model, batch[1:], layer="body", method=method, targets=0, read=PixelScores(masks[1:]))
    if method not in ("smooth-grad", "smooth-grad-cam++"):
        torch.testing.assert_close(both.raw[1:], alone.raw)


def test_what_no_mask_fits_is_refused(model: Segmenter, batch: Tensor) -> None:
    with pytest.raises(ExplainError, match="6x8 pixels and the answer 12x16"):
        heat_maps(model, batch, layer="body", read=PixelScores(torch.ones(2, 6, 8, dtype=torch.bool)), targets=0)
    with pytest.raises(ExplainError, match="No pixel"):
        heat_maps(model, batch, layer="body", read=PixelScores(masks_of((0, 0, 0, 0), (0, 1, 0, 1))), targets=0)
    with pytest.raises(ExplainError, match="no scores for pixels"):
        pixel_scores(torch.zeros(2, 5))


def test_overlaps_by_hand() -> None:
    boxes = torch.tensor([[0.0, 0, 2, 2], [1, 1, 3, 3], [5, 5, 6, 6], [0, 0, 0, 0]])
    assert overlaps(boxes, torch.tensor([0.0, 0, 2, 2])).tolist() == pytest.approx([1.0, 1 / 7, 0.0, 0.0])
    assert overlaps(boxes[3:], torch.zeros(4)).tolist() == [0.0]


def test_a_box_is_scored_by_the_detections_that_cover_it() -> None:
    scores = torch.tensor([0.9, 0.8, 0.7], requires_grad=True)
    answer = [
        {
            "boxes": torch.tensor([[0.0, 0, 10, 10], [0, 0, 10, 8], [50, 50, 60, 60]]),
            "labels": torch.tensor([3, 3, 3]),
            "scores": scores,
        }
    ]
    reading = BoxScore(torch.tensor([[0.0, 0, 10, 10]]), [3])
    # 0.9 x 1 + 0.8 x 80/100; the third lies elsewhere.
    assert reading(answer, [0]).item() == pytest.approx(0.9 + 0.64)
    (gradient,) = torch.autograd.grad(reading(answer, [0]).sum(), [scores])
    assert gradient.tolist() == pytest.approx([1.0, 0.8, 0.0])
    assert BoxScore(torch.tensor([[0.0, 0, 10, 10]]), [4])(answer, [0]).item() == 0
    with pytest.raises(ExplainError, match="no boxes"):
        detections({"out": scores})


def test_torchvisions_segmentation_and_detection() -> None:
    torch.manual_seed(0)
    model = torchvision.models.get_model(
        "lraspp_mobilenet_v3_large", weights=None, weights_backbone=None, num_classes=4
    ).eval()
    x = torch.randn(1, 3, 64, 64)
    seen = int(model(x)["out"].argmax(dim=1).mode().values.flatten()[0])
    maps = heat_maps(model, x, layer="backbone", read=PixelScores.of_class(model(x), seen), targets=seen)
    assert float(maps.gradient_peak) > 0

    detector = torchvision.models.get_model(
        "fasterrcnn_mobilenet_v3_large_320_fpn", weights=None, weights_backbone=None, num_classes=3, min_size=64,
        box_score_thresh=0.0,
    ).eval()  # fmt: skip
    x = torch.rand(1, 3, 64, 64)
    found = detections(detector(x))[0]
    assert len(found["scores"])
    reading = BoxScore(found["boxes"][:1].detach(), [int(found["labels"][0])])
    maps = heat_maps(detector, x, layer="backbone.body", targets=0, read=reading)
    assert float(maps.gradient_peak) > 0
    assert maps.logits[0, 0] >= found["scores"][0].detach() - 1e-5


def test_the_corners_of_boxes_are_no_class_scores() -> None:
    """Two pictures with boxes (K, 4): not four classes."""
    found = {"boxes": torch.rand(2, 4), "labels": torch.tensor([1, 2]), "scores": torch.tensor([0.9, 0.2])}
    with pytest.raises(ExplainError, match="This is a detector: ask for a box"):
        class_scores([found, found], [0, 1])
    with pytest.raises(ExplainError, match="semantic segmentation: ask for the pixels"):
        class_scores({"out": torch.rand(1, 3, 8, 8)}, [0])
    with pytest.raises(ExplainError, match="answers 1 pictures with 5 rows"):
        class_scores(torch.rand(5, 3), [0])
    assert class_scores(torch.rand(1, 3), [0]).shape == (1, 3)


def test_pixels_of_a_single_output_are_those_it_says_yes_to() -> None:
    scores = torch.tensor([[[[2.0, -1.0], [-3.0, 4.0]]]])
    assert given_classes(scores).tolist() == [[[0, -1], [-1, 0]]]
    assert PixelScores.of_class(scores, 0)(scores, [0]).tolist() == [[3.0]]
    with pytest.raises(ExplainError, match="It gives none to any class"):
        PixelScores.of_class(-scores.abs(), 0)
    two = torch.tensor([[[[0.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, -1.0]]]])
    assert given_classes(two).tolist() == [[[1, 1], [1, 0]]]


class Padded(nn.Module):
    """torchvision's own preparation before one convolution: 40 x 40 becomes 64 x 64, with nothing in three eighths."""

    def __init__(self) -> None:
        super().__init__()
        self.transform = GeneralizedRCNNTransform(40, 400, [0.0] * 3, [1.0] * 3)
        self.conv = nn.Conv2d(3, 1, 8, stride=8, bias=False)
        self.relu = nn.ReLU()
        nn.init.constant_(self.conv.weight, 1 / 192)

    def forward(self, x: Tensor) -> Tensor:
        images, _ = self.transform(list(x))
        return self.relu(self.conv(images.tensors)).square().sum(dim=(2, 3))


def test_padding_is_no_part_of_the_picture() -> None:
    model = Padded().eval()
    picture = torch.zeros(1, 3, 40, 40)
    picture[:, :, 32:, 32:] = 1  # the last of five cells; the layer has eight
    layer = find_layer(model, "conv", (3, 40, 40))
    assert layer.grid == (8, 8)
    maps = heat_maps(model, picture, layer=layer, targets=0, method="hires-cam")
    assert maps.raw.shape == (1, 8, 8)
    # The hot cell is the picture's last, around pixel 36; of the padded whole it would lie around 22.
    assert min(divmod(int(maps.heat.flatten().argmax()), 40)) >= 34
    rows = maps.heat[0].sum(dim=1)
    assert float(rows[:24].sum()) == 0
    for method in ("score-cam", "guided-grad-cam"):
        hottest = divmod(int(heat_maps(model, picture, layer=layer, targets=0, method=method).heat.argmax()), 40)
        assert min(hottest) >= 32, method


def test_without_padding_by_hand() -> None:
    maps = torch.tensor([[[0.0, 1.0, 2.0, 3.0]] * 2])
    assert without_padding(maps, (1.0, 1.0)) is maps
    # Half of the width is the picture: its four cells lie at a quarter, three quarters ... of the first two cells.
    shown = without_padding(maps, (1.0, 0.5))
    assert shown[0, 0].tolist() == pytest.approx([0.0, 0.25, 0.75, 1.25])
