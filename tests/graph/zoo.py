"""Small networks with what makes a graph awkward, each with an input."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torchvision
from torch import Tensor, nn


class Residual(nn.Module):
    """One ReLU that is called twice, an in-place addition, a branch of its own."""

    def __init__(self, width: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width // stride, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1)
        self.shortcut = nn.Conv2d(width // stride, width, 1, stride) if stride > 1 else None

    def forward(self, x: Tensor) -> Tensor:
        out = self.conv2(self.relu(self.bn1(self.conv1(x))))
        if self.shortcut is not None:
            x = self.shortcut(x)
        out += x
        return self.relu(out)


class Cnn(nn.Module):
    """Four equal blocks, then a wider one."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.body = nn.Sequential(*(Residual(8) for _ in range(4)), Residual(16, 2))
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(16 * 16, 5))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.stem(x)))


class Dense(nn.Module):
    """Each layer reads all earlier outputs."""

    def __init__(self, layers: int = 12) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4 * (n + 1), 4) for n in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for layer in self.layers:
            features.append(layer(torch.cat(features, -1)))
        return torch.cat(features, -1)


class Shared(nn.Module):
    """One layer three times, with others between; several outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.tied = nn.Linear(4, 4)
        self.other = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        one = self.tied(x)
        two = self.tied(self.other(one))
        a, b = torch.split(two, 2, -1)
        return a * b, self.tied(two), one


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 5, num_layers=2, batch_first=True)
        self.out = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, (h, _) = self.lstm(x)
        return self.out(y), h


class Branch(nn.Module):
    """A branch on a value, by torch.cond."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.a(x)
        y = torch.cond(x.sum() > 0, lambda v: self.a(v) + 1, lambda v: self.b(v).relu(), (y,))
        return self.b(y)


class Script(nn.Module):
    """Branches and loops that tracing would lose."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x: Tensor, n: int) -> Tensor:
        y = self.a(x)
        for _ in range(n):
            y = y + 1
            y.mul_(2)
        for block in self.blocks:
            y = block(y)
        if bool(y.sum() > 0):  # noqa: SIM108 a branch is wanted
            y = self.a(y)
        else:
            y = y * 2
        while bool(y.max() > 1):
            y = y / 2
        return y


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.MultiheadAttention(8, 2, batch_first=True) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer(x, x, x, need_weights=False)[0]
        return x


def small_vit() -> nn.Module:
    return torchvision.models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=4, num_heads=2, hidden_dim=16, mlp_dim=32, num_classes=5
    )


def _tv(name: str) -> Callable[[], nn.Module]:
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    return lambda: torchvision.models.get_model(name, weights=None, **options)


PICTURE = (1, 3, 64, 64)
#: name -> (how it is made, shape of its input). The first take part in every run.
SMALL: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "cnn": (Cnn, (1, 3, 8, 8)),
    "dense": (Dense, (2, 4)),
    "shared": (Shared, (2, 4)),
    "lstm": (Recurrent, (2, 3, 4)),
    "attention": (Attention, (1, 3, 8)),
}
LARGE: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "vit": (small_vit, (1, 3, 32, 32)),
    **{
        name: (_tv(name), PICTURE)
        for name in ("resnet18", "mobilenet_v2", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5",
                     "densenet121", "efficientnet_b0", "regnet_y_400mf", "mnasnet0_5", "swin_t")
    },
    "googlenet": (_tv("googlenet"), PICTURE),
}  # fmt: skip
