"""ResNets for small pictures (He 2015, section 4.2), in the layouts of the two widespread training repositories.

Written from the paper; the names are those of the files. A shortcut without parameters takes every second pixel and
pads the channels with zeros on both sides (option A).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, pad, relu


class OptionA(nn.Module):
    """Every second pixel, new channels zero: half of them in front of the old ones, half behind."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.added = after - before
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, before, height, width). Returns (batch, after, height/stride, width/stride)."""
        front = self.added // 2
        return pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, front, self.added - front))


class Block(nn.Module):
    """Two 3x3 convolutions, or three in a bottleneck, beside a shortcut."""

    def __init__(self, before: int, inner: int, after: int, stride: int, *, bottleneck: bool, shortcut: bool) -> None:
        super().__init__()
        kernels = (1, 3, 1) if bottleneck else (3, 3)
        widths = (before, inner, inner, after) if bottleneck else (before, after, after)
        # The stride is that of the first 3x3 convolution.
        strided = kernels.index(3)
        for i, kernel in enumerate(kernels):
            steps = stride if i == strided else 1
            convolution = nn.Conv2d(widths[i], widths[i + 1], kernel, steps, kernel // 2, bias=False)
            setattr(self, f"conv{i + 1}", convolution)
            setattr(self, f"bn{i + 1}", nn.BatchNorm2d(widths[i + 1]))
        self.depth = len(kernels)
        self.shortcut: nn.Module = nn.Sequential()
        if stride != 1 or before != after:
            if shortcut:
                convolution = nn.Conv2d(before, after, 1, stride, bias=False)
                self.shortcut = nn.Sequential(convolution, nn.BatchNorm2d(after))
            else:
                self.shortcut = OptionA(before, after, stride)

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, before, height, width)."""
        y = x
        for i in range(1, self.depth + 1):
            y = self.get_submodule(f"bn{i}")(self.get_submodule(f"conv{i}")(y))
            y = relu(y) if i < self.depth else y
        return relu(y + self.shortcut(x))


class CifarResNet(nn.Module):
    """A 3x3 stem, stages that halve the picture from the second on, and one linear layer."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__()
        widths, blocks = settings["width"], settings["blocks"]
        inner = settings.get("inner")
        self.conv1 = nn.Conv2d(settings["in_channels"], widths[0], 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        before = widths[0]
        self.stages = len(blocks)
        for s, count in enumerate(blocks, start=1):
            stage = []
            for b in range(count):
                stride = 2 if b == 0 and s > 1 else 1
                block = Block(
                    before,
                    inner[s - 1] if inner else widths[s],
                    widths[s],
                    stride,
                    bottleneck=inner is not None,
                    shortcut=settings.get("shortcut", True),
                )
                stage.append(block)
                before = widths[s]
            setattr(self, f"layer{s}", nn.Sequential(*stage))
        self.linear = nn.Linear(before, settings["num_classes"])

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, channels, height, width). Returns (batch, classes)."""
        x = relu(self.bn1(self.conv1(x)))
        for s in range(1, self.stages + 1):
            x = self.get_submodule(f"layer{s}")(x)
        answer: Tensor = self.linear(adaptive_avg_pool2d(x, 1).flatten(1))
        return answer


def build_cifar_resnet(settings: dict[str, Any]) -> nn.Module:
    """Either layout; `inner` makes bottlenecks, `shortcut` False makes shortcuts without parameters."""
    return CifarResNet(settings)
