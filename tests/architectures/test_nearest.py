"""A network of unknown names and widths beside the known ones with the same layers."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
import torch
import torchvision
from torch import nn
from torchvision.models import ResNet, ShuffleNetV2, VisionTransformer
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.resnet import BasicBlock

from inspector import open_checkpoint
from inspector.architectures.index import load_index
from inspector.architectures.recognise import recognise
from inspector.architectures.structure.nearest import nearest
from inspector.architectures.structure.types import Topic

MODELS = torchvision.models


def _said(model: nn.Module) -> str | None:
    """Of its weights under names of nobody's."""
    buffer = io.BytesIO()
    named = enumerate(model.state_dict().items())
    torch.save({f"part{n:04}.{name.rpartition('.')[2]}": value for n, (name, value) in named}, buffer)
    state = open_checkpoint(buffer.getvalue()).weights
    assert state is not None
    claim = nearest(state.tensors, load_index())
    return None if claim is None else claim.says


def _convnext() -> nn.Module:
    sizes = ((48, 96, 3), (96, 192, 3), (192, 384, 9), (384, None, 3))
    return ConvNeXt([CNBlockConfig(*size) for size in sizes], num_classes=5)


@pytest.mark.parametrize(
    ("make", "who", "differs"),
    [
        (lambda: MODELS.mobilenet_v2(width_mult=0.5, num_classes=62), "mobilenetv2_050", "as wide, 62 out"),
        (
            lambda: MODELS.DenseNet(12, (6, 12, 24, 16), 24, num_classes=10),
            "densenet121",
            "about 0.375 times as wide, 10",
        ),
        (_convnext, "convnext_tiny", "about 0.5 times as wide, 5 out instead of 1,000"),
        (lambda: ShuffleNetV2([4, 8, 4], [24, 60, 120, 240, 512], num_classes=3), "shufflenet_v2_x", "3 out"),
        (lambda: MODELS.resnet18(num_classes=7), "resnet18", "as wide, 7 out"),
    ],
)
def test_the_same_layers_at_another_width(make: Callable[[], nn.Module], who: str, differs: str) -> None:
    says = _said(make())
    assert says is not None and who in says and differs in says


@pytest.mark.parametrize(
    "make",
    [
        lambda: ResNet(BasicBlock, [3, 3, 3, 3]),
        lambda: nn.Sequential(*(nn.Conv2d(3, 3, 3) for _ in range(30))),
        lambda: nn.Sequential(*(nn.Linear(8, 8) for _ in range(30))),
        lambda: VisionTransformer(image_size=32, patch_size=4, num_layers=6, num_heads=4, hidden_dim=64, mlp_dim=128),
        lambda: MODELS.resnet18().layer1,
    ],
)
def test_what_is_like_nothing_or_like_everything_has_no_nearest(make: Callable[[], nn.Module]) -> None:
    assert _said(make()) is None


def test_it_stands_in_the_description_of_a_network_that_nobody_knows() -> None:
    model = MODELS.DenseNet(12, (6, 12, 24, 16), 24, num_classes=10)
    buffer = io.BytesIO()
    torch.save({f"body.{name}.x": value for name, value in model.state_dict().items()}, buffer)
    checkpoint = open_checkpoint(buffer.getvalue())
    found = recognise(checkpoint, checkpoint.weights)
    assert found.structure is not None
    assert any(claim.topic is Topic.NEAREST for claim in found.structure.claims)
    assert "densenet121" in found.structure.says
