"""Layers behind a scale that is near zero hardly move: their biases, which began at zero, tell that gradients came."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from inspector.findings import Severity
from tests.health.observed import observe

IDS = ("fresh-weights", "untrained-head", "unloaded-backbone", "unchanged-layers")


class _Block(nn.Module):
    def __init__(self, width: int, scale: float) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        nn.init.zeros_(self.fc1.bias)
        nn.init.zeros_(self.fc2.bias)
        self.gamma = nn.Parameter(torch.full((width,), scale))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.gamma * self.fc2(self.fc1(x).relu())


def _trained(scale: float, *, skipped: int | None = None) -> dict[str, torch.Tensor]:
    """skipped: the block that is not run."""
    torch.manual_seed(0)
    stem, head = nn.Linear(16, 48), nn.Linear(48, 16)
    blocks = nn.ModuleList(_Block(48, scale) for _ in range(4))
    model = nn.ModuleDict({"stem": stem, "blocks": blocks, "head": head})
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for _ in range(4):
        x = stem(torch.randn(32, 16))
        for i, block in enumerate(blocks):
            x = x if i == skipped else block(x)
        optimizer.zero_grad()
        head(x).square().mean().backward()
        optimizer.step()
    return model.state_dict()


def test_layers_behind_a_layer_scale_of_a_millionth_are_not_said_to_be_unchanged(tmp_path: Path) -> None:
    state, began = _trained(1e-6), _trained(1e-6, skipped=1)
    fresh = began["blocks.1.fc1.weight"]
    assert (state["blocks.1.fc1.weight"] == fresh).float().mean() > 0.9  # Nearly all of them are.
    assert observe(tmp_path, state, *IDS) == ()


def test_a_block_that_was_not_run_is_told_by_its_zeros(tmp_path: Path) -> None:
    (found,) = observe(tmp_path, _trained(0.5, skipped=1), *IDS)
    assert (found.id, found.severity) == ("unchanged-layers", Severity.WARNING)
    assert found.subjects == ("blocks.1.fc1.weight", "blocks.1.fc2.weight")
    assert "have not moved either: no gradient came there" in found.remedy


def test_an_edge_alone_is_a_hint_where_the_bias_was_trained(tmp_path: Path) -> None:
    """Numbers of another generator, which no last bit proves."""
    torch.manual_seed(0)
    state = _trained(0.5)
    bound = 1 / 48**0.5
    import numpy as np

    numbers = np.random.default_rng(0).uniform(-bound, bound, (2048, 48)).astype(np.float32)
    state |= {"more.weight": torch.from_numpy(numbers), "more.bias": torch.full((2048,), 0.1) + torch.rand(2048)}
    (found,) = observe(tmp_path, state, *IDS)
    assert (found.subjects, found.severity) == (("more.weight",), Severity.NOTICE)
    state["more.bias"] = torch.zeros(2048)
    (found,) = observe(tmp_path, state, *IDS)
    assert (found.subjects, found.severity) == (("more.weight",), Severity.WARNING)


def test_sixteen_bits_claim_no_layer_whose_norm_was_trained(tmp_path: Path) -> None:
    """Mean, spread and shape of a trained layer may be an initialiser's."""
    torch.manual_seed(0)
    state = {f"body.{i}.weight": torch.randn(64, 64) * 0.3 for i in range(4)}
    state |= {f"body.{i}.bias": torch.randn(64) for i in range(4)}
    state["body.4.conv.weight"] = torch.randn(128, 128, 3, 3) * (2 / (128 * 9)) ** 0.5
    state["body.4.norm.weight"], state["body.4.norm.bias"] = torch.rand(128) + 0.5, torch.randn(128) * 0.1
    half = {k: v.half() for k, v in state.items()}
    assert observe(tmp_path, half, *IDS) == ()
    half["body.4.norm.weight"], half["body.4.norm.bias"] = torch.ones(128).half(), torch.zeros(128).half()
    (found,) = observe(tmp_path, half, *IDS)
    assert (found.subjects, found.severity) == (("body.4.conv.weight",), Severity.NOTICE)


@pytest.mark.parametrize("count", [8, 64])
def test_filters_of_one_number_before_a_norm_are_left_alone(count: int, tmp_path: Path) -> None:
    """A norm takes their scale away, so that they have no gradient."""
    state = _trained(0.5)
    for i in range(2):
        scale = nn.Conv2d(32 * count, 32 * count, 1, groups=32 * count, bias=False)
        state |= {f"scale.{i}.weight": scale.weight.detach(), f"scale.{i}.norm.bias": torch.randn(32 * count)}
    assert observe(tmp_path, state, *IDS) == ()
