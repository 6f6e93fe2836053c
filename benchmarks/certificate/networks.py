"""Networks of every family whose batch norms the certificate reads, small enough to be trained in a minute.

Each is written as its family is written elsewhere: the names and the order of definition are what the certificate has
to go by where there is no graph.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torchvision.models as tv
from torch import Tensor, nn
from torchvision.models.densenet import DenseNet
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

#: Four shapes, the three colours of the object and where it lies: a minute teaches little of the first.
CLASSES = 9
Activation = Callable[[], nn.Module]


def plain(activation: Activation, *, bias: bool = False, pool: Activation = lambda: nn.MaxPool2d(2)) -> nn.Module:
    """VGG: convolutions with norms in one row; `bias` as torchvision's own VGG has it."""
    layers: list[nn.Module] = []
    before = 3
    for width in (24, 32, 0, 48, 48, 0, 64, 64, 64):
        if not width:
            layers.append(pool())
            continue
        layers += [nn.Conv2d(before, width, 3, padding=1, bias=bias), nn.BatchNorm2d(width), activation()]
        before = width
    features = nn.Sequential(*layers)
    return nn.Sequential(features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, CLASSES))


class Linear(nn.Module):
    """Pairs of convolutions with nothing but a norm between them, as factorised kernels are."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*[self.block(a, b) for a, b in ((3, 32), (32, 48), (48, 64), (64, 64))])
        self.head = nn.Linear(64, CLASSES)

    @staticmethod
    def block(before: int, width: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(before, width, (3, 1), padding=(1, 0), bias=False),
            nn.BatchNorm2d(width),
            nn.Conv2d(width, width, (1, 3), padding=(0, 1), bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(width),
        )

    def forward(self, pictures: Tensor) -> Tensor:
        return self.head(self.blocks(pictures).mean((2, 3)))


class PreAct(nn.Module):
    """Norm and ReLU before each convolution (He 2016, as kuangliu/pytorch-cifar names it)."""

    class Block(nn.Module):
        def __init__(self, before: int, width: int, stride: int) -> None:
            super().__init__()
            self.bn1 = nn.BatchNorm2d(before)
            self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
            self.shortcut = nn.Conv2d(before, width, 1, stride, bias=False) if stride > 1 else nn.Identity()

        def forward(self, given: Tensor) -> Tensor:
            inner = torch.relu(self.bn1(given))
            return self.conv2(torch.relu(self.bn2(self.conv1(inner)))) + self.shortcut(given)

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3, 1, 1, bias=False)
        sizes = ((32, 32, 1), (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 64, 2))
        self.layers = nn.Sequential(*[self.Block(*size) for size in sizes])
        self.bn = nn.BatchNorm2d(64)
        self.linear = nn.Linear(64, CLASSES)

    def forward(self, pictures: Tensor) -> Tensor:
        return self.linear(torch.relu(self.bn(self.layers(self.conv1(pictures)))).mean((2, 3)))


class ConvNorm(nn.Sequential):
    """A convolution, its norm and an activation, with Inception's names."""

    def __init__(self, before: int, width: int, kernel: int, activation: Activation) -> None:
        super().__init__()
        self.add_module("conv", nn.Conv2d(before, width, kernel, padding=kernel // 2, bias=False))
        self.add_module("bn", nn.BatchNorm2d(width))
        self.add_module("act", activation())


class Inception(nn.Module):
    """Four branches side by side, concatenated (Szegedy 2015)."""

    class Block(nn.Module):
        def __init__(self, before: int, widths: tuple[int, int, int, int], activation: Activation) -> None:
            super().__init__()
            one, three, five, pool = widths
            self.branch1 = ConvNorm(before, one, 1, activation)
            self.branch2 = nn.Sequential(
                ConvNorm(before, three // 2, 1, activation), ConvNorm(three // 2, three, 3, activation)
            )
            self.branch3 = nn.Sequential(
                ConvNorm(before, five, 1, activation),
                ConvNorm(five, five, 3, activation),
                ConvNorm(five, five, 3, activation),
            )
            self.branch4 = nn.Sequential(nn.AvgPool2d(3, 1, 1), ConvNorm(before, pool, 1, activation))

        def forward(self, given: Tensor) -> Tensor:
            return torch.cat([self.branch1(given), self.branch2(given), self.branch3(given), self.branch4(given)], 1)

    def __init__(self, activation: Activation) -> None:
        super().__init__()
        self.stem = ConvNorm(3, 32, 3, activation)
        self.inception3a = self.Block(32, (16, 32, 16, 16), activation)
        self.inception3b = self.Block(80, (32, 48, 24, 24), activation)
        self.inception4a = self.Block(128, (32, 48, 24, 24), activation)
        self.fc = nn.Linear(128, CLASSES)

    def forward(self, pictures: Tensor) -> Tensor:
        inner = nn.functional.avg_pool2d(self.stem(pictures), 2)
        inner = nn.functional.max_pool2d(self.inception3b(self.inception3a(inner)), 2)
        return self.fc(self.inception4a(inner).mean((2, 3)))


class UNet(nn.Module):
    """milesial/Pytorch-UNet's names and double convolutions; answers with a mask's logits."""

    def __init__(self, activation: Activation) -> None:
        super().__init__()
        self.inc = self.double(3, 24, activation)
        self.down1 = self.double(24, 48, activation)
        self.down2 = self.double(48, 64, activation)
        self.up1 = nn.ConvTranspose2d(64, 48, 2, 2)
        self.conv1 = self.double(96, 48, activation)
        self.up2 = nn.ConvTranspose2d(48, 24, 2, 2)
        self.conv2 = self.double(48, 24, activation)
        self.outc = nn.Conv2d(24, 1, 1)

    @staticmethod
    def double(before: int, width: int, activation: Activation) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(before, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            activation(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            activation(),
        )

    def forward(self, pictures: Tensor) -> Tensor:
        first = self.inc(pictures)
        second = self.down1(nn.functional.max_pool2d(first, 2))
        third = self.down2(nn.functional.max_pool2d(second, 2))
        third = self.conv1(torch.cat([second, self.up1(third)], 1))
        return self.outc(self.conv2(torch.cat([first, self.up2(third)], 1)))


def _with(model: nn.Module, activation: Activation) -> nn.Module:
    """The same network with another activation in place of each ReLU."""
    for name, child in model.named_children():
        setattr(model, name, activation() if isinstance(child, nn.ReLU) else _with(child, activation))
    return model


def _resnet(block: type[BasicBlock] | type[Bottleneck], blocks: list[int], **options: int) -> ResNet:
    return ResNet(block, blocks, num_classes=CLASSES, **options)


#: name: how to build it.
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "vgg_relu": lambda: plain(partial(nn.ReLU, inplace=True)),
    "resnet_relu": lambda: _resnet(BasicBlock, [1, 1, 1, 1], width_per_group=64),
    "mobilenet_v3_hardswish": lambda: tv.mobilenet_v3_small(num_classes=CLASSES, width_mult=0.75),
    "densenet_relu": lambda: DenseNet(16, (3, 4, 3), 32, num_classes=CLASSES),
    "unet_leaky": lambda: UNet(partial(nn.LeakyReLU, 0.1)),
    "linear_none": Linear,
    "vgg_silu_bias": lambda: plain(nn.SiLU, bias=True),
    "vgg_gelu_avgpool": lambda: plain(nn.GELU, pool=partial(nn.AvgPool2d, 2)),
    "vgg_hardswish": lambda: plain(nn.Hardswish),
    "bottleneck_silu": lambda: _with(_resnet(Bottleneck, [1, 1, 1, 1], width_per_group=32), nn.SiLU),
    "preact_relu": PreAct,
    "mobilenet_v2_relu6": lambda: tv.mobilenet_v2(num_classes=CLASSES, width_mult=0.5),
    "efficientnet_silu": lambda: tv.mnasnet0_5(num_classes=CLASSES),
    "inception_relu": lambda: Inception(nn.ReLU),
    "inception_elu": lambda: Inception(nn.ELU),
    "resnext_leaky": lambda: _with(
        _resnet(Bottleneck, [1, 1, 1, 1], groups=4, width_per_group=16), partial(nn.LeakyReLU, 0.2)
    ),
    "unet_mish": lambda: UNet(nn.Mish),
}
NETWORKS["mnasnet_relu"] = NETWORKS.pop("efficientnet_silu")
#: What was seen on these changed the rules (as the committed sample did): for them the figures are no hold-out.
TUNED_ON = (
    *("vgg_relu", "resnet_relu", "mobilenet_v3_hardswish", "densenet_relu", "unet_leaky", "linear_none"),
    *("vgg_hardswish", "bottleneck_silu", "inception_relu", "resnext_leaky"),
)
