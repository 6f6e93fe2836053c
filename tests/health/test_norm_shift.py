"""A shift four scales below zero leaves a ReLU with 3.2e-5 of a normal distribution."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.health.observed import observe

ID = "norm-shift-silences"


def _state(shift: float, channels: int) -> dict[str, torch.Tensor]:
    bias = torch.linspace(-0.4, 0.4, 20)
    bias[:channels] = shift
    return {
        "bn.weight": torch.full((20,), -0.5),
        "bn.bias": bias,
        "bn.running_mean": torch.ones(20),
        "bn.running_var": torch.full((20,), 2.0),
    }


def test_units_shifted_below_four_scales_are_counted(tmp_path: Path) -> None:
    (found,) = observe(tmp_path, _state(-2.001, 3), ID)
    assert found.says.startswith("3 of 20 channels of batch norms (15.0 %) are shifted more than 4 times")
    assert dict(found.evidence)["fires, if normal"] == pytest.approx(3.167e-5, rel=1e-3)


def test_just_above_upwards_and_single_units_are_quiet(tmp_path: Path) -> None:
    assert observe(tmp_path, _state(-1.999, 3), ID) == ()
    assert observe(tmp_path, _state(5.0, 3), ID) == ()
    assert observe(tmp_path, _state(-5.0, 1), ID) == ()
