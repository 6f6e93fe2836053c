"""torchvision's MobileNet v2 and EfficientNet with solved arguments, and with strides, which no shape tells."""

from __future__ import annotations

from typing import Any

from torch import nn


def build_mobilenet_v2(settings: dict[str, Any]) -> nn.Module:
    """MobileNetV2, block by block. Raises ValueError for a block whose expansion is no whole multiple."""
    from torchvision.models import MobileNetV2
    from torchvision.models.mobilenetv2 import Conv2dNormActivation, InvertedResidual

    widths, inner, strides = settings["width"], settings["inner"], _strides(settings, settings["blocks"])
    model = MobileNetV2(num_classes=settings["num_classes"])
    layers: list[nn.Module] = [_stem(model.features[0], settings["in_channels"], widths[0])]
    for i, stride in enumerate(strides, start=1):
        ratio, odd = divmod(inner[i - 1], widths[i - 1])
        if odd or (ratio == 1) == bool(settings["expand"][i - 1]):
            raise ValueError(f"features.{i} expands {widths[i - 1]} channels to {inner[i - 1]}")
        layers.append(InvertedResidual(widths[i - 1], widths[i], stride, ratio))
    last = settings["last"]
    layers.append(Conv2dNormActivation(widths[-1], last, kernel_size=1, activation_layer=nn.ReLU6))
    model.features = nn.Sequential(*layers)
    model.classifier[1] = nn.Linear(last, settings["num_classes"])
    built: nn.Module = model
    return built


def build_efficientnet(settings: dict[str, Any]) -> nn.Module:
    """EfficientNet; the rate of dropped paths, which evaluation does not use, is zero.

    Raises ValueError for strides that are not one per stage.
    """
    from torchvision.models import EfficientNet
    from torchvision.models.efficientnet import MBConvConfig

    widths, blocks, strides = settings["width"], settings["blocks"], _strides(settings, settings["stages"])
    config, first = [], 0
    for s, (count, stride) in enumerate(zip(blocks, strides, strict=True)):
        # The ratio of the first block; torchvision rounds the others by it, and a strict load tells.
        ratio = settings["inner"][first] / widths[s]
        config.append(MBConvConfig(ratio, settings["kernel"][s], stride, widths[s], widths[s + 1], count))
        first += count
    model = EfficientNet(
        config,
        dropout=0.2,
        stochastic_depth_prob=0.0,
        num_classes=settings["num_classes"],
        last_channel=settings["last"],
    )
    if settings["in_channels"] != 3:
        model.features[0] = _stem(model.features[0], settings["in_channels"], widths[0])
    built: nn.Module = model
    return built


def _strides(settings: dict[str, Any], wanted: int) -> tuple[int, ...]:
    strides = settings["strides"]
    strides = strides if isinstance(strides, tuple) else (strides,) * wanted
    if len(strides) != wanted:
        raise ValueError(f"{len(strides)} strides are given and {wanted} needed")
    return strides


def _stem(stem: nn.Module, channels: int, width: int) -> nn.Module:
    """The first convolution, of torchvision's own kind, for other channels and widths."""
    convolution = nn.Conv2d(channels, width, 3, stride=2, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(width), stem.get_submodule("2"))
