"""Grad-CAM by hand, and against the recipe that people paste from blogs, on real architectures."""

from __future__ import annotations

import pytest
import torch
import torchvision
from torch import Tensor, nn

from inspector.cam.engine.maps import heat_maps
from inspector.cam.layers.proposals import find_layer
from inspector.cam.methods import METHODS
from inspector.cam.methods.grad_cam import grad_cam


def test_arithmetic_by_hand() -> None:
    # Two channels on a 1x2 grid; mean gradients are 2 and -1.
    activation = torch.tensor([[[[1.0, 3.0]], [[4.0, 1.0]]]])
    gradient = torch.tensor([[[[1.0, 3.0]], [[-2.0, 0.0]]]])
    # 2 x [1, 3] - 1 x [4, 1] = [-2, 5]
    assert grad_cam(activation, gradient).sum(dim=1).tolist() == [[[-2.0, 5.0]]]


class Tiny(nn.Module):
    """A 1x1 convolution, the mean, a linear head: the whole of Grad-CAM fits on paper."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 1, bias=False)
        self.head = nn.Linear(2, 2, bias=False)
        with torch.no_grad():
            self.conv.weight.copy_(torch.tensor([1.0, -2.0]).reshape(2, 1, 1, 1))
            self.head.weight.copy_(torch.tensor([[3.0, 1.0], [-1.0, 1.0]]))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.conv(x).mean(dim=(2, 3)))


def test_tiny_network_by_hand() -> None:
    x = torch.tensor([[[[0.0, 1.0, 2.0, 4.0], [0.0, 0.0, 0.0, -4.0], [0.0] * 4, [0.0] * 4]]])
    maps = heat_maps(Tiny(), x, layer="conv", targets=0)
    # A = [x, -2x]; d score_0 / d A = [3, 1] / 16; map = (3x - 2x) / 16 = x / 16.
    assert torch.equal(maps.raw, x[:, 0] / 16)
    # ReLU, divided by the maximum 4 / 16; the grid is the input's, so nothing is enlarged.
    assert maps.heat[0, 0].tolist() == [0.0, 0.25, 0.5, 1.0]
    assert maps.heat[0, 1:].abs().max() == 0
    # Class 1: [-1, 1] / 16 -> (-x - 2x) / 16 = -3x / 16: only the negative input speaks for it.
    other = heat_maps(Tiny(), x, layer="conv", targets=1)
    assert torch.equal(other.raw, -3 * x[:, 0] / 16)
    assert other.heat[0, 1, 3] == 1.0
    assert other.heat.sum() == 1.0


def test_faint_maps_are_not_shrunk() -> None:
    """An absolute epsilon in the divisor would leave almost nothing of a map of size 1e-20."""
    x = torch.zeros(1, 1, 4, 4)
    x[0, 0, 1, 2] = 1e-20
    assert heat_maps(Tiny(), x, layer="conv", targets=0).heat.max() == 1.0


def blog_recipe(model: nn.Module, module: nn.Module, x: Tensor, target: int) -> Tensor:
    """Features times pooled gradients, mean over channels, ReLU, divided by the maximum, resized: as it is pasted.

    Written for models without in-place operations behind the layer.
    """
    kept: dict[str, Tensor] = {}

    def forward_hook(_module: nn.Module, _args: object, output: Tensor) -> None:
        kept["features"] = output
        output.register_hook(lambda gradient: kept.update(gradient=gradient))

    handle = module.register_forward_hook(forward_hook)
    model(x)[0, target].backward()
    handle.remove()
    pooled = kept["gradient"].mean(dim=[0, 2, 3])
    features = kept["features"].detach().clone()
    for channel in range(features.shape[1]):
        features[:, channel] *= pooled[channel]
    heatmap = features.mean(dim=1).clamp(min=0)
    heatmap = heatmap / heatmap.max()
    return nn.functional.interpolate(heatmap[None], size=x.shape[2:], mode="bilinear", align_corners=False)[0, 0]


def light_model(name: str) -> nn.Module:
    """Ten classes, random weights; VGG without its 120 million weights of fully connected layers."""
    if not name.startswith("vgg"):
        return torchvision.models.get_model(name, weights=None, num_classes=10)
    with torch.device("meta"):
        model = torchvision.models.get_model(name, weights=None)
    model.classifier = nn.Linear(512 * 7 * 7, 10, device="cpu")
    model.features.to_empty(device="cpu")
    for module in model.features:
        if isinstance(module, nn.Conv2d):
            module.reset_parameters()
    return model


@pytest.mark.parametrize(
    ("name", "layer"),
    [("resnet18", "layer4"), ("mobilenet_v2", "features"), ("vgg11", "features.18"), ("densenet121", "features")],
)
def test_the_pasted_recipe_on_real_architectures(name: str, layer: str) -> None:
    torch.manual_seed(3)
    model = light_model(name).double().eval()
    for module in model.modules():
        if isinstance(module, nn.ReLU | nn.ReLU6):
            module.inplace = False  # for the recipe's sake only
    original = torch.nn.functional.relu
    x = torch.randn(1, 3, 96, 128, dtype=torch.float64)
    try:
        # DenseNet applies an in-place ReLU to the layer's output, which the pasted recipe does not survive.
        torch.nn.functional.relu = lambda tensor, inplace=False: original(tensor)
        expected = blog_recipe(model, model.get_submodule(layer), x, target=4)
    finally:
        torch.nn.functional.relu = original
    for module in model.modules():
        if isinstance(module, nn.ReLU | nn.ReLU6):
            module.inplace = True
    model.zero_grad()
    maps = heat_maps(model, x, layer=layer, targets=4)
    assert expected.max() > 0.5
    assert (maps.heat[0] - expected).abs().max() < 1e-12
    assert all(parameter.grad is None for parameter in model.parameters())


def test_batches_are_the_single_maps() -> None:
    torch.manual_seed(3)
    model = torchvision.models.get_model("shufflenet_v2_x0_5", weights=None, num_classes=6).double().train()
    batch = torch.randn(3, 3, 128, 96, dtype=torch.float64)
    layer = find_layer(model, "stage4", (3, 128, 96))
    together = heat_maps(model, batch, layer=layer, targets=[0, 5, 2])
    assert together.raw.shape == (3, 4, 3)
    for index, target in enumerate((0, 5, 2)):
        alone = heat_maps(model, batch[index : index + 1], layer=layer, targets=target)
        torch.testing.assert_close(together.raw[index], alone.raw[0], rtol=0, atol=1e-12)
        torch.testing.assert_close(together.heat[index], alone.heat[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_single(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    features = [nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 6, 3, stride=2)]
    model = nn.Sequential(*features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4))
    x = torch.randn(1, 3, 40, 40)
    exact = heat_maps(model, x, layer="2", targets=1)
    half = heat_maps(model.to(dtype), x, layer="2", targets=1)
    assert half.raw.dtype == torch.float32
    assert half.logits.dtype == torch.float32
    error = (half.heat - exact.heat).abs().max()
    assert 0 < error < (0.05 if dtype is torch.bfloat16 else 0.01)


def test_grad_cam_is_offered_first() -> None:
    assert METHODS[0].id == "grad-cam"
    assert "1610.02391" in METHODS[0].paper
