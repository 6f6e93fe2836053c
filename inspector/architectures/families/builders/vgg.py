"""VGGs of any widths and depths, from the numbering of their layers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from torch import Tensor, nn


def features(conv: Sequence[int], norm: Sequence[int], width: Sequence[int], inner: Sequence[int]) -> nn.Sequential:
    """The layers that leave these tensors, with the activations and poolings between them and one pooling at the end.

    Raises ValueError where one layer's input is not the one before's output.
    """
    layers: list[nn.Module] = []
    channels = None
    for i in range(len(conv)):
        if conv[i]:
            if channels not in (None, inner[i]):
                raise ValueError(f"features.{i} takes {inner[i]} channels and gets {channels}")
            channels = width[i]
            layers.append(nn.Conv2d(inner[i], width[i], 3, padding=1))
        elif norm[i]:
            layers.append(nn.BatchNorm2d(width[i]))
        elif isinstance(layers[-1], nn.Conv2d | nn.BatchNorm2d):
            layers.append(nn.ReLU(inplace=True))
        elif isinstance(layers[-1], nn.ReLU):
            layers.append(nn.MaxPool2d(2, 2))
        else:
            raise ValueError(f"features.{i} is neither a layer nor an activation or a pooling")
    return nn.Sequential(*layers, nn.ReLU(inplace=True), nn.MaxPool2d(2, 2))


class CifarVGG(nn.Module):
    """Convolutions, and one linear layer on what they leave of the picture."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__()
        self.features = _features(settings)
        self.features.append(nn.AvgPool2d(1, 1))
        self.classifier = nn.Linear(settings["last"], settings["num_classes"])

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, channels, 32, 32). Returns (batch, classes)."""
        answer: Tensor = self.classifier(self.features(x).flatten(1))
        return answer


def build_cifar_vgg(settings: dict[str, Any]) -> nn.Module:
    """kuangliu's layout."""
    return CifarVGG(settings)


def build_vgg(settings: dict[str, Any]) -> nn.Module:
    """torchvision's VGG."""
    from torchvision.models import VGG

    layers = _features(settings)
    last = next(m.out_channels for m in reversed(layers) if isinstance(m, nn.Conv2d))
    model: nn.Module = VGG(layers, num_classes=settings["num_classes"], init_weights=False)
    first, second = settings["hidden"]
    if settings["flat"] != last * 49:
        raise ValueError(f"classifier.0 takes {settings['flat']} values and gets {last * 49}")
    for place, (before, after) in zip(
        "036", pairwise((settings["flat"], first, second, settings["num_classes"])), strict=True
    ):
        setattr(model.classifier, place, nn.Linear(before, after))
    return model


def _features(settings: dict[str, Any]) -> nn.Sequential:
    inner = (settings["in_channels"], *settings["inner"][1:])
    return features(settings["conv"], settings["norm"], settings["width"], inner)
