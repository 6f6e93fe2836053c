"""A network that torchvision has, and one that nobody knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import Tensor, nn

from inspector.checkpoint.types import Checkpoint
from tests.surgery.networks import Detector, saved, trained


@pytest.fixture(scope="session")
def resnet() -> nn.Module:
    from torchvision.models import resnet18

    return trained(resnet18(num_classes=4)).eval()


@pytest.fixture
def detector(tmp_path: Path) -> tuple[Checkpoint, dict[str, Tensor]]:
    model = trained(Detector())
    return saved(model.state_dict(), tmp_path / "detector.pth"), model.state_dict()
