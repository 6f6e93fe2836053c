"""Settings that torch would refuse, and a weight decay that shrinks weights to nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.findings import Severity
from inspector.health.checks.optimizer_settings import CHECK
from tests.health.observed import number
from tests.health.trainings import Run, findings


@pytest.mark.parametrize("optimizer", ["Adam", "AdamW", "SGD", "RMSprop", "Adagrad", "Muon"])
def test_usual_settings_are_quiet(tmp_path: Path, optimizer: str) -> None:
    assert findings(tmp_path, Run(optimizer).step(2).saved(), CHECK) == ()


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("weight_decay", -0.01, "weight_decay -0.01"),
        ("betas", (0.9, 1.5), "beta 1.5"),
        ("eps", float("nan"), "eps nan"),
    ],
)
def test_settings_that_torch_refuses(tmp_path: Path, name: str, value: object, shown: str) -> None:
    saved = Run().step(2).saved()
    saved["optimizer"]["param_groups"][0][name] = value
    (found,) = findings(tmp_path, saved, CHECK)
    assert (found.id, found.severity) == ("optimizer-setting-invalid", Severity.ERROR)
    assert shown in found.says


def test_a_decay_that_takes_a_fifth_of_a_weight_in_a_step(tmp_path: Path) -> None:
    saved = Run("AdamW").step(2).saved()
    group = saved["optimizer"]["param_groups"][0]
    group["lr"], group["weight_decay"] = 2e-3, 100.0
    (found,) = findings(tmp_path, saved, CHECK)
    assert (found.id, found.severity) == ("weight-decay-heavy", Severity.WARNING)
    assert "weight_decay of 100" in found.says and "0.2 of a weight" in found.says
    assert number(found, "weight_decay") == 100
    # Grokking's: a thousandth a step.
    group["lr"], group["weight_decay"] = 1e-3, 1.0
    assert findings(tmp_path, saved, CHECK) == ()
