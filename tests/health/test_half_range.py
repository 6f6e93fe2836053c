"""What a cast to float16 would lose, held against the cast itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import observe

IDS = ("half-precision-overflow", "half-precision-underflow")


def test_usual_weights_are_quiet(tmp_path: Path) -> None:
    torch.manual_seed(0)
    assert observe(tmp_path, torch.nn.Linear(64, 64).state_dict(), *IDS) == ()


@pytest.mark.parametrize(("value", "infinite"), [(65519.0, False), (65520.0, True), (1e6, True)])
def test_overflow_begins_where_the_cast_gives_infinity(value: float, infinite: bool, tmp_path: Path) -> None:
    weight = torch.linspace(-1, 1, 64).reshape(8, 8).clone()
    weight[0, 0] = -value
    assert bool(torch.isinf(weight.half()).any()) == infinite
    found = observe(tmp_path, {"fc.weight": weight}, *IDS)
    assert [(f.id, f.severity, f.subjects) for f in found] == (
        [("half-precision-overflow", Severity.NOTICE, ("fc.weight",))] if infinite else []
    )


def test_a_batch_norms_variance_is_said_and_a_buffers_is_not(tmp_path: Path) -> None:
    norm = torch.nn.BatchNorm1d(8).state_dict()
    norm["running_var"] = torch.full((8,), 1e6)
    (found,) = observe(tmp_path, {f"bn.{k}": v for k, v in norm.items()}, *IDS)
    assert found.subjects == ("bn.running_var",)
    assert observe(tmp_path, {"running_var": torch.full((8,), 1e6)}, *IDS) == ()


def test_numbers_that_become_zero_or_lose_digits_are_counted(tmp_path: Path) -> None:
    torch.manual_seed(0)
    weight = torch.exp(torch.empty(128, 128).uniform_(-20, -8))
    half = weight.half()
    zeroed = float((half == 0).float().mean())
    coarse = float(((half > 0) & (weight < 2.0**-14)).float().mean())
    (found,) = observe(tmp_path, {"fc.weight": weight}, *IDS)
    assert (found.id, found.severity) == ("half-precision-underflow", Severity.INFO)
    assert dict(found.evidence)["zeroed"] == pytest.approx(zeroed, abs=2e-3)
    assert dict(found.evidence)["coarse"] == pytest.approx(coarse, abs=2e-3)
    assert observe(tmp_path, {"fc.weight": weight.bfloat16()}, *IDS)
    assert observe(tmp_path, {"fc.weight": half}, *IDS) == ()


def test_zeros_of_a_pruned_weight_are_not_lost(tmp_path: Path) -> None:
    torch.manual_seed(0)
    weight = torch.nn.functional.dropout(torch.randn(64, 64), 0.9)
    assert observe(tmp_path, {"fc.weight": weight}, *IDS) == ()
