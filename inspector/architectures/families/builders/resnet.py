"""torchvision's ResNet with any depths, widths and groups: its blocks and its forward pass, other numbers."""

from __future__ import annotations

from typing import Any

from torch import nn
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet


class AnyResNet(ResNet):  # type: ignore[misc]
    """ResNet whose constructor takes every width; torchvision's own begins with 64 and doubles."""

    def __init__(self, settings: dict[str, Any]) -> None:
        nn.Module.__init__(self)
        widths = settings["width"]
        self.conv1 = nn.Conv2d(settings["in_channels"], widths[0], 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        before = widths[0]
        for s, count in enumerate(settings["blocks"], start=1):
            stage = []
            for b in range(count):
                stride = 2 if b == 0 and s > 1 else 1
                stage.append(_block(settings, s, before, stride))
                before = widths[s]
            setattr(self, f"layer{s}", nn.Sequential(*stage))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(before, settings["num_classes"])


def _block(settings: dict[str, Any], s: int, before: int, stride: int) -> nn.Module:
    after = settings["width"][s]
    downsample = None
    if stride != 1 or before != after:
        downsample = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
    if "inner" not in settings:
        plain: nn.Module = BasicBlock(before, after, stride, downsample)
        return plain
    inner, per_group = settings["inner"][s - 1], settings["per_group"][s - 1]
    if inner % per_group or after % 4:
        raise ValueError(f"layer{s} has {inner} channels in groups of {per_group} inside, {after} outside")
    # The block computes its inner width as int(planes x base_width / 64) x groups.
    groups, planes = inner // per_group, after // 4
    block: nn.Module = Bottleneck(before, planes, stride, downsample, groups, 64 * per_group / planes)
    return block


def build_resnet(settings: dict[str, Any]) -> nn.Module:
    """A ResNet; `inner` makes bottlenecks. Raises ValueError for widths that no group count gives."""
    return AnyResNet(settings)
