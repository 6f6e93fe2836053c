"""The scale of the inputs that the first batch norm was measured on."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from inspector.findings import Severity
from tests.health.observed import number, observe, only

KIND = "norm-input-scale"


def _measured(scale: float, *layers: nn.Module) -> dict[str, torch.Tensor]:
    """The state of a network after a few batches of that deviation."""
    torch.manual_seed(0)
    network = nn.Sequential(*layers).train()
    for _ in range(40):
        network(scale * torch.randn(4, 3, 12, 12))
    return network.state_dict()


def _layers(first: int = 3) -> list[nn.Module]:
    return [
        *(nn.Conv2d(first, 16, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.Conv2d(16, 24, 3, bias=False), nn.BatchNorm2d(24), nn.ReLU()),
    ]


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_inputs_of_a_usual_scale_are_quiet(tmp_path: Path, scale: float) -> None:
    assert observe(tmp_path, _measured(scale, *_layers()), KIND) == ()


def test_pictures_that_were_not_normalised_are_a_notice(tmp_path: Path) -> None:
    found = only(observe(tmp_path, _measured(70.0, *_layers()), KIND))
    assert (found.severity, found.subjects) == (Severity.NOTICE, ("1.running_var",))
    assert number(found, "deviation") == pytest.approx(70, rel=0.1)
    assert number(found, "later norms") < 3


def test_a_norm_that_is_not_behind_the_first_convolution_tells_nothing(tmp_path: Path) -> None:
    state = _measured(70.0, nn.Conv2d(3, 12, 1), nn.ReLU(), *_layers(12))
    assert observe(tmp_path, state, KIND) == ()
