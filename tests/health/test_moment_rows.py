"""Rows that no gradient has reached: the tokens that never occurred are known here, and so are dead units."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from inspector.health.checks import moment_rows
from inspector.health.checks.moment_rows import CHECK
from inspector.health.examine import examine
from inspector.readers import open_checkpoint
from inspector.weights import row_sums
from tests.health.trainings import Run, findings


@pytest.mark.parametrize("optimizer", ["Adam", "SGD", "RMSprop", "Adadelta", "Adafactor", "NAdam", "Adagrad"])
def test_tokens_that_never_occurred_are_named(tmp_path: Path, optimizer: str) -> None:
    run = Run(optimizer).step(30)
    for group in run.optimizer.param_groups:
        assert not group["weight_decay"]
    (found,) = findings(tmp_path, run.saved(), CHECK)
    assert (found.severity, found.subjects) == (Severity.INFO, ("emb.weight",))
    assert found.says == ("11 of 50 rows of emb.weight never had a gradient: rows 0, 40, 41, 42, 43 and 6 more.")


def test_a_dead_unit_is_a_row_and_a_living_layer_has_none(tmp_path: Path) -> None:
    saved = Run(frozen=["emb.weight"]).step(5).saved()
    assert findings(tmp_path, saved, CHECK) == ()
    state = saved["optimizer"]["state"][4]
    assert state["exp_avg_sq"].shape == (16, 16)
    state["exp_avg_sq"][[3, 7]] = 0
    # Of gradients that came, and whose squares were lost, another check tells.
    assert findings(tmp_path, saved, CHECK) == ()
    state["exp_avg"][[3, 7]] = 0
    (found,) = findings(tmp_path, saved, CHECK)
    assert (found.severity, found.subjects) == (Severity.NOTICE, ("fc.weight",))
    assert found.says.startswith("2 of 16 rows of 1 parameter in optimizer never had a gradient other than zero")


def test_scattered_zeros_are_no_rows(tmp_path: Path) -> None:
    saved = Run(frozen=["emb.weight"]).step(5).saved()
    saved["optimizer"]["state"][4]["exp_avg_sq"] *= 1 - torch.eye(16)
    assert findings(tmp_path, saved, CHECK) == ()


def test_rows_of_what_is_too_large_to_be_read_again_are_said_not_to_be_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = Run(frozen=["emb.weight"]).step(5).saved()
    for field in ("exp_avg", "exp_avg_sq"):
        saved["optimizer"]["state"][4][field][3] = 0
    torch.save(saved, tmp_path / "run.pth")
    monkeypatch.setattr(row_sums, "_MOST", 0)
    monkeypatch.setattr(moment_rows, "_READ_NBYTES", 4 * 16 * 16 - 1)
    report = examine(open_checkpoint(tmp_path / "run.pth"))
    ((what, why),) = [one for one in report.passed_over if "without a gradient" in one[1]]
    assert "exp_avg_sq" in what and why.startswith("not searched for rows without a gradient: up to 1.02 kB")
    monkeypatch.setattr(moment_rows, "_READ_NBYTES", 2 * 4 * 16 * 16)
    enough = examine(open_checkpoint(tmp_path / "run.pth"))
    assert "rows-without-gradient" in {f.id for f in enough.findings} and enough.passed_over == ()
