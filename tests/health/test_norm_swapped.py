"""Scale and shift in each other's place."""

from __future__ import annotations

from pathlib import Path

import torch

from inspector.findings import Severity
from tests.health.observed import observe, only


def _norms(count: int = 5) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    state = {f"h.{i}.ln.weight": 1 + 0.1 * torch.randn(64) for i in range(count)}
    return state | {f"h.{i}.ln.bias": 0.03 * torch.randn(64) for i in range(count)}


def test_one_of_several_norms(tmp_path: Path) -> None:
    state = _norms()
    assert observe(tmp_path, state, "norm-scale-and-shift-swapped") == ()
    state["h.2.ln.weight"], state["h.2.ln.bias"] = state["h.2.ln.bias"], state["h.2.ln.weight"]
    found = only(observe(tmp_path, state, "norm-scale-and-shift-swapped", "unlike-role"))
    assert (found.id, found.severity) == ("norm-scale-and-shift-swapped", Severity.WARNING)
    assert found.subjects == ("h.2.ln.weight", "h.2.ln.bias")
    assert "in 4 other norms it is the other way round" in found.says


def test_norms_at_rest_and_shifts_that_grew_are_quiet(tmp_path: Path) -> None:
    state = _norms()
    state["h.2.ln.weight"] = torch.zeros(64)
    state["h.3.ln.bias"] = 1 + 0.1 * torch.randn(64)
    state["h.4.ln.weight"], state["h.4.ln.bias"] = 0.01 * torch.rand(64), torch.randn(64)
    assert observe(tmp_path, state, "norm-scale-and-shift-swapped") == ()
