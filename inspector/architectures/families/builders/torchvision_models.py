"""torchvision's own classes with arguments that were solved from a file."""

from __future__ import annotations

from math import isqrt
from typing import Any

from torch import nn


def build_densenet(settings: dict[str, Any]) -> nn.Module:
    """DenseNet. Raises ValueError for transitions that do not halve the channels, as torchvision's do."""
    from torchvision.models import DenseNet

    growth, layers, start, inner = (settings[name] for name in ("growth", "layers", "start", "inner"))
    for d in range(1, len(layers)):
        if start[d] != (start[d - 1] + layers[d - 1] * growth) // 2:
            raise ValueError(f"transition{d} leaves {start[d]} channels, not half of what it gets")
    if inner % growth:
        raise ValueError(f"{inner} channels inside a layer are no multiple of the growth, {growth}")
    model = DenseNet(growth, tuple(layers), start[0], inner // growth, num_classes=settings["num_classes"])
    if settings["in_channels"] != 3:
        model.features.conv0 = nn.Conv2d(settings["in_channels"], start[0], 7, 2, 3, bias=False)
    built: nn.Module = model
    return built


def build_vit(settings: dict[str, Any]) -> nn.Module:
    """VisionTransformer. Raises ValueError where the positions are no square of patches and a class token."""
    from torchvision.models import VisionTransformer

    positions, patch, hidden = settings["positions"], settings["patch"], settings["hidden"]
    side = isqrt(positions - 1)
    if side**2 != positions - 1:
        raise ValueError(f"{positions - 1} patches are no square")
    model = VisionTransformer(
        image_size=side * patch,
        patch_size=patch,
        num_layers=settings["layers"],
        num_heads=settings["heads"],
        hidden_dim=hidden,
        mlp_dim=settings["mlp"],
        num_classes=settings["num_classes"],
    )
    if settings["in_channels"] != 3:
        model.conv_proj = nn.Conv2d(settings["in_channels"], hidden, patch, patch)
    built: nn.Module = model
    return built


def build_convnext(settings: dict[str, Any]) -> nn.Module:
    """ConvNeXt; the rate of dropped paths, which evaluation does not use, is zero."""
    from torchvision.models import ConvNeXt
    from torchvision.models.convnext import CNBlockConfig

    widths = settings["width"]
    stages = [
        CNBlockConfig(width, widths[s + 1] if s + 1 < len(widths) else None, count)
        for s, (width, count) in enumerate(zip(widths, settings["blocks"], strict=True))
    ]
    model = ConvNeXt(stages, num_classes=settings["num_classes"])
    if settings["in_channels"] != 3:
        model.features[0][0] = nn.Conv2d(settings["in_channels"], widths[0], 4, 4)
    built: nn.Module = model
    return built
