"""Zeros in the deviations that inputs are divided by."""

from __future__ import annotations

from pathlib import Path

import torch

from inspector.findings import Severity
from tests.health.observed import number, observe, only


def test_zeros_in_a_deviation_beside_its_mean(tmp_path: Path) -> None:
    state = {"feat_mean": torch.zeros(12), "feat_std": torch.linspace(0.5, 2, 12)}
    assert observe(tmp_path, state, "deviation-not-positive") == ()
    state["feat_std"][[3, 7]] = 0
    found = only(observe(tmp_path, state, "deviation-not-positive"))
    assert found.severity is Severity.WARNING and number(found, "numbers") == 2
    assert found.says == "2 of 12 numbers of feat_std are not above zero, the first at [3]."
    # Without a mean it may be anything, and before it was measured all are alike.
    assert observe(tmp_path, {"feat_std": state["feat_std"]}, "deviation-not-positive") == ()
    assert observe(tmp_path, state | {"feat_std": torch.zeros(12)}, "deviation-not-positive") == ()
