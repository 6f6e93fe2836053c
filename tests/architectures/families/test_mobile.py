"""MobileNet v2 and EfficientNet with odd arguments, by torchvision's own constructors; the strides are asked."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torchvision.models import EfficientNet, MobileNetV2
from torchvision.models.efficientnet import MBConvConfig

from inspector.architectures.build import build_model
from inspector.architectures.targets import parse_spec
from inspector.architectures.types import Candidate
from inspector.errors import UsageError

Check = Callable[..., Candidate]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def test_a_mobilenet_of_other_widths(check: Check) -> None:
    # Halved where the first, second, third and fifth wider stage begin, as torchvision's own is.
    stages = [[1, 16, 1, 1], [6, 24, 2, 2], [4, 32, 1, 2], [6, 48, 2, 2], [6, 56, 1, 1], [6, 64, 1, 2]]
    model = MobileNetV2(num_classes=5, inverted_residual_setting=stages)
    label = (
        "torchvision/mobilenet2?num_classes=5&in_channels=3&blocks=8&expand=0,1,1,1,1,1,1,1"
        "&inner=32,96,144,96,192,288,288,336&last=1280&width=32,16,24,24,32,48,48,56,64"
    )
    found = check(model, label, (1, 3, 64, 64))
    assert [(one.name, one.value) for one in found.spec.assumed] == [("strides", (1, 2, 1, 2, 2, 1, 1, 2))]


def test_strides_are_written_as_a_list_and_must_be_one_per_block() -> None:
    short = "torchvision/mobilenet2?num_classes=5&in_channels=1&blocks=2&expand=0,1&inner=8,48&last=20&width=8,8,12"
    model = build_model(parse_spec(f"{short}&strides=1,2"))
    assert [m.stride for m in model.modules() if isinstance(m, nn.Conv2d) and m.groups > 1] == [(1, 1), (2, 2)]
    with torch.inference_mode():
        assert model(torch.randn(1, 1, 32, 32)).shape == (1, 5)
    with pytest.raises(UsageError, match="3 strides are given and 2 needed"):
        build_model(parse_spec(f"{short}&strides=1,2,1"))
    with pytest.raises(UsageError, match="expands 8 channels to 50"):
        build_model(parse_spec(short.replace("8,48", "8,50")))


def test_an_efficientnet_of_other_depths(check: Check) -> None:
    config = [
        MBConvConfig(1, 3, 1, 16, 8, 2),
        MBConvConfig(6, 5, 2, 8, 24, 1),
        MBConvConfig(4, 3, 2, 24, 40, 3),
    ]
    model = EfficientNet(config, dropout=0.2, num_classes=4, last_channel=96)
    label = (
        "torchvision/efficientnet?num_classes=4&in_channels=3&blocks=2,1,3&expand=0,1,1&inner=16,8,48,96,160,160"
        "&kernel=3,5,3&last=96&squeezed=4,2,2,6,10,10&stages=3&width=16,8,24,40"
    )
    found = check(model, label, (1, 3, 64, 64))
    assert [one.value for one in found.spec.assumed] == [(1, 2, 2)]
