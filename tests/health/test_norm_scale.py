"""Scales near zero are counted; scales that begin at zero, small layers and negative scales are not."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.health.observed import observe

ID = "norm-scale-near-zero"


def _state(scale: torch.Tensor) -> dict[str, torch.Tensor]:
    n = len(scale)
    return {
        "bn.weight": scale,
        "bn.bias": torch.full((n,), 0.1),
        "bn.running_mean": torch.ones(n),
        "bn.running_var": torch.full((n,), 2.0),
    }


def test_near_zero_is_a_hundredth_of_the_largest(tmp_path: Path) -> None:
    scale = torch.linspace(0.5, 1.0, 100)
    scale[:7] = torch.tensor([0.0, 1e-9, -0.003, 0.0099, -0.0099, 0.0101, -0.0101])
    (found,) = observe(tmp_path, _state(scale), ID)
    assert dict(found.evidence)["channels"] == 5
    assert found.says.startswith("5 of 100 channels of batch norms (5.0 %) have a scale below 0.01")


def test_negative_scales_are_quiet(tmp_path: Path) -> None:
    assert observe(tmp_path, _state(-torch.linspace(0.5, 1.0, 100)), ID) == ()


def test_a_residual_branch_that_begins_at_zero_is_quiet(tmp_path: Path) -> None:
    assert observe(tmp_path, _state(torch.zeros(100)), ID) == ()


def test_fewer_than_one_channel_in_a_hundred_are_not_said(tmp_path: Path) -> None:
    scale = torch.linspace(0.5, 1.0, 200)
    scale[0] = 0.0
    assert observe(tmp_path, _state(scale), ID) == ()
