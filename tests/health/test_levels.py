"""Quantised weights whose scale leaves them next to no levels, or clips them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import number, observe, only


def _quantised(divisor: float) -> dict[str, torch.Tensor]:
    """Normal weights by rows, the scale the largest of each row over the divisor."""
    torch.manual_seed(0)
    weight = torch.randn(64, 128)
    scale = weight.abs().amax(1, keepdim=True) / divisor
    return {"fc.weight": (weight / scale).round().clamp(-128, 127).to(torch.int8), "fc.weight_scale": scale}


def test_a_scale_of_the_largest_weight_itself_leaves_three_levels(tmp_path: Path) -> None:
    state = _quantised(1)
    found = only(observe(tmp_path, state, "quantised-levels"))
    share = float((state["fc.weight"] == 0).float().mean())
    assert found.severity is Severity.WARNING and number(found, "share") == pytest.approx(share)
    assert found.says.startswith("fc.weight uses 3 of the 255 levels of int8, -1 to 1, and ")


def test_a_scale_far_too_small_piles_them_up_at_the_ends(tmp_path: Path) -> None:
    found = only(observe(tmp_path, _quantised(127 * 8), "quantised-levels"))
    assert "are at the last levels of int8, -128 or 127" in found.says


def test_usual_scales_four_bits_in_a_byte_and_ternary_ones_are_quiet(tmp_path: Path) -> None:
    for divisor in (127.0, 7.0, 127 * 1.2):
        assert observe(tmp_path, _quantised(divisor), "quantised-levels") == ()
    torch.manual_seed(0)
    weight = torch.randn(64, 128)
    ternary = (weight / weight.abs().mean()).round().clamp(-1, 1).to(torch.int8)
    state = {"fc.weight": ternary, "fc.weight_scale": torch.ones(())}
    assert observe(tmp_path, state, "quantised-levels") == ()
    # Without a scale they may be anything.
    assert observe(tmp_path, {"fc.weight": _quantised(1)["fc.weight"]}, "quantised-levels") == ()


def test_three_levels_among_layers_that_use_all_of_them(tmp_path: Path) -> None:
    """However few of them are zeros: a ternary network has no layers of 127 levels beside it, but its head."""
    state = {f"h.{n}.{key}": value for n in range(5) for key, value in _quantised(127).items()}
    ternary = (state["h.2.fc.weight"].float() / 60).round().to(torch.int8)
    assert float((ternary == 0).float().mean()) < 0.8
    state["h.2.fc.weight"] = ternary
    found = only(observe(tmp_path, state, "quantised-levels"))
    assert (found.severity, found.subjects) == (Severity.WARNING, ("h.2.fc.weight",))
    for n in (0, 1, 3):
        state[f"h.{n}.fc.weight"] = ternary
    assert observe(tmp_path, state, "quantised-levels") == ()
