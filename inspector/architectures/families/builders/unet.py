"""U-Net (Ronneberger 2015) with padded convolutions and batch norms, named as milesial's files name it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad


class DoubleConv(nn.Module):
    """Twice a 3x3 convolution, a norm and a ReLU."""

    def __init__(self, before: int, middle: int, after: int, *, bias: bool) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inner, out in ((before, middle), (middle, after)):
            layers += [nn.Conv2d(inner, out, 3, padding=1, bias=bias), nn.BatchNorm2d(out), nn.ReLU(inplace=True)]
        self.double_conv = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, before, height, width)."""
        answer: Tensor = self.double_conv(x)
        return answer


class Down(nn.Module):
    """Half the size, then a double convolution."""

    def __init__(self, before: int, after: int, *, bias: bool) -> None:
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(before, after, after, bias=bias))

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, before, height, width)."""
        answer: Tensor = self.maxpool_conv(x)
        return answer


class Up(nn.Module):
    """Twice the size, joined with the skip, then a double convolution."""

    def __init__(self, before: int, joined: int, middle: int, after: int, *, transposed: bool, bias: bool) -> None:
        super().__init__()
        self.up: nn.Module
        if transposed:
            self.up = nn.ConvTranspose2d(before, before // 2, 2, stride=2)
        else:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.conv = DoubleConv(joined, middle, after, bias=bias)

    def forward(self, low: Tensor, skip: Tensor) -> Tensor:
        """low: from below, (batch, before, h, w). skip: (batch, channels, about 2h, about 2w)."""
        low = self.up(low)
        tall, wide = skip.shape[2] - low.shape[2], skip.shape[3] - low.shape[3]
        low = pad(low, (wide // 2, wide - wide // 2, tall // 2, tall - tall // 2))
        answer: Tensor = self.conv(torch.cat((skip, low), dim=1))
        return answer


class OutConv(nn.Module):
    """The classes of every pixel."""

    def __init__(self, before: int, classes: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(before, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, before, height, width)."""
        answer: Tensor = self.conv(x)
        return answer


class UNet(nn.Module):
    """Down, and up again with the skips."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__()
        down, up, bias = settings["down"], settings["up"], settings["bias"]
        self.depth: int = settings["depth"]
        self.inc = DoubleConv(settings["in_channels"], down[0], down[0], bias=bias)
        for d in range(1, self.depth + 1):
            setattr(self, f"down{d}", Down(down[d - 1], down[d], bias=bias))
        for u in range(1, self.depth + 1):
            skip, joined = down[self.depth - u], settings["joined"][u - 1]
            before = up[u - 1]
            if joined != skip + (before // 2 if settings["transposed"] else before):
                raise ValueError(f"up{u} joins {joined} channels, the layers below and beside give others")
            part = Up(before, joined, settings["middle"][u - 1], up[u], transposed=settings["transposed"], bias=bias)
            setattr(self, f"up{u}", part)
        self.outc = OutConv(up[self.depth], settings["num_classes"])

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, channels, height, width). Returns (batch, classes, height, width)."""
        levels = [self.inc(x)]
        for d in range(1, self.depth + 1):
            levels.append(self.get_submodule(f"down{d}")(levels[-1]))
        x = levels.pop()
        for u in range(1, self.depth + 1):
            x = self.get_submodule(f"up{u}")(x, levels.pop())
        answer: Tensor = self.outc(x)
        return answer


def build_unet(settings: dict[str, Any]) -> nn.Module:
    """The U-Net of these settings. Raises ValueError where widths do not fit together."""
    settings = dict(settings)
    # The way up begins with what the way down ends with.
    settings["up"] = (settings["down"][-1], *settings["up"])
    return UNet(settings)
