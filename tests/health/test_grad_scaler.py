"""A gradient scaler that came down, and one that did not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from inspector.health.checks.grad_scaler import CHECK
from tests.health.trainings import findings


def _scaled(scale: float) -> dict[str, object]:
    return {
        "model": torch.nn.Linear(3, 3).state_dict(),
        "scaler": {**torch.amp.GradScaler("cpu").state_dict(), "scale": scale},
    }


@pytest.mark.parametrize("scale", [1.0, 65536.0, 2.0**24])
def test_a_usual_scale_has_no_finding(tmp_path: Path, scale: float) -> None:
    assert findings(tmp_path, _scaled(scale), CHECK) == ()


def test_many_overflows_in_a_row_are_a_warning(tmp_path: Path) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        scaler.scale((weight * float("inf")).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    (found,) = findings(tmp_path, {"model": {"w": torch.randn(3)}, "scaler": scaler.state_dict()}, CHECK)
    assert (found.severity, found.evidence) == (Severity.WARNING, (("scale", 0.125), ("threshold", 1.0)))


@pytest.mark.parametrize("scale", [0.0, float("nan"), float("inf")])
def test_a_scale_that_loses_every_gradient_is_an_error(tmp_path: Path, scale: float) -> None:
    assert [f.severity for f in findings(tmp_path, _scaled(scale), CHECK)] == [Severity.ERROR]
