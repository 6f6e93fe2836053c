"""Whether a parameter has left its initialisation; quantised rows are none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.health.observed import observe

IDS = ("fresh-weights", "untrained-head", "unloaded-backbone", "unchanged-layers")


def _rounded(weight: torch.Tensor, levels: int) -> torch.Tensor:
    """Each row to so many levels on either side of zero, by a scale of its own."""
    scale = weight.abs().amax(1, keepdim=True) / levels
    return (weight / scale).round() * scale


@pytest.mark.parametrize(("levels", "said"), [(7, 0), (0, 1)])
def test_rows_quantised_by_a_scale_each_are_no_initialisers(tmp_path: Path, levels: int, said: int) -> None:
    torch.manual_seed(0)
    fresh = torch.randn(512, 256).double().mul(0.02).float()
    state = {f"h.{i}.fc.weight": torch.randn(256, 256).sinh() / 9 for i in range(3)}
    state |= {f"h.{i}.norm.weight": 1 + torch.rand(256) for i in range(3)}
    state |= {f"h.{i}.norm.bias": torch.rand(256) for i in range(3)}
    state["h.3.fc.weight"] = _rounded(fresh, levels) if levels else fresh
    assert len(observe(tmp_path, state, *IDS)) == said
