"""At which learning rate a training would resume, and where optimizer and schedule disagree."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from inspector.health.checks.resuming import CHECK
from tests.health.trainings import Run, copied, findings, one


def test_the_rate_of_every_group_is_said(tmp_path: Path) -> None:
    found = one(findings(tmp_path, Run("AdamW", "StepLR", grouped=True).epoch(3).saved(), CHECK), "resuming")
    assert found.severity is Severity.INFO
    # 6 vectors at a tenth of 1e-3, and 4 others (with three dimensions or two) at a tenth of 1e-4.
    assert found.says == (
        "Resuming now would train at lr 0.0001 for 5 parameters, 1e-05 for 4 parameters (AdamW in optimizer, 12 steps "
        "done). StepLR in scheduler has made 3 steps."
    )


def test_only_what_trains_has_a_rate(tmp_path: Path) -> None:
    assert findings(tmp_path, {"model": torch.nn.Linear(3, 3).state_dict(), "epoch": 3}, CHECK) == ()


def test_a_rate_of_zero_is_a_notice(tmp_path: Path) -> None:
    run = Run("SGD", "PolynomialLR").epoch(20, per=1)
    found = one(findings(tmp_path, run.saved(), CHECK), "learning-rate-zero")
    assert found.severity is Severity.NOTICE
    assert found.says == "1 group of 1 with 9 parameters would train at lr 0."


@pytest.mark.parametrize("lr", [-0.1, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_an_error(tmp_path: Path, lr: float) -> None:
    saved = Run("SGD").step().saved()
    saved["optimizer"]["param_groups"][0]["lr"] = lr
    assert one(findings(tmp_path, saved, CHECK), "learning-rate-invalid").severity is Severity.ERROR


def test_an_optimizer_that_was_made_anew_beside_an_old_schedule_is_a_warning(tmp_path: Path) -> None:
    old, new = Run("SGD", "ExponentialLR").epoch(5), Run("SGD", "ExponentialLR")
    saved = old.saved(optimizer=new.optimizer.state_dict())
    found = one(findings(tmp_path, saved, CHECK), "learning-rates-disagree")
    assert found.severity is Severity.WARNING
    assert found.says == (
        "ExponentialLR in scheduler set lr 0.059049 last, and SGD in optimizer would train at 0.1, where it began "
        "(1 group)."
    )


def test_a_rate_that_was_set_by_hand_is_a_notice(tmp_path: Path) -> None:
    saved = Run("SGD", "ExponentialLR").epoch(5).saved()
    assert [f.id for f in findings(tmp_path, saved, CHECK)] == ["resuming"]
    saved["optimizer"]["param_groups"][0]["lr"] = 0.03
    assert one(findings(tmp_path, saved, CHECK), "learning-rates-disagree").severity is Severity.NOTICE


def test_two_schedules_of_one_optimizer_are_not_held_against_it(tmp_path: Path) -> None:
    run = Run("SGD", "ExponentialLR").epoch(5)
    saved = run.saved(warmup=Run("SGD", "LinearLR").epoch(1).schedule.state_dict())  # type: ignore[union-attr]
    assert [f.id for f in findings(tmp_path, saved, CHECK)] == ["resuming"]


def test_a_group_that_the_schedule_does_not_know_is_a_notice(tmp_path: Path) -> None:
    run = Run("SGD", "StepLR").epoch(2)
    run.optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(2))]})
    found = one(findings(tmp_path, run.saved(), CHECK), "learning-rates-disagree")
    assert (found.severity, found.evidence) == (Severity.NOTICE, (("rates", 1), ("groups", 2)))


@pytest.mark.parametrize(("schedule", "epochs"), [("OneCycleLR", 30), ("CosineAnnealingLR", 20)])
def test_a_schedule_that_is_over_is_a_notice(tmp_path: Path, schedule: str, epochs: int) -> None:
    run = Run("SGD", schedule).epoch(epochs - 1, per=1)
    assert "schedule-over" not in [f.id for f in findings(tmp_path, run.saved(), CHECK)]
    found = one(findings(tmp_path, run.epoch(per=1).saved(), CHECK), "schedule-over")
    assert (found.severity, found.says) == (
        Severity.NOTICE,
        f"{schedule} in scheduler has made {epochs} of its {epochs} steps.",
    )


def test_a_file_of_very_many_optimizers_stays_short(tmp_path: Path) -> None:
    optimizer = Run("SGD").step().optimizer.state_dict()
    optimizer["param_groups"][0]["lr"] = -1.0
    found = findings(tmp_path, copied({f"o{n}": dict(optimizer) for n in range(100)}))
    assert len(found) < 10


@pytest.mark.parametrize(("base", "said"), [(0.5, 1), (None, 0)])
def test_a_schedule_that_begins_elsewhere_than_the_optimizer_is_a_notice(
    tmp_path: Path, base: float | None, said: int
) -> None:
    saved = Run("Adam", "ExponentialLR").epoch(3).saved()
    if base is not None:
        saved["scheduler"]["base_lrs"] = [base]
    found = [f for f in findings(tmp_path, saved, CHECK) if "base_lrs" in f.says]
    assert [f.severity for f in found] == [Severity.NOTICE] * said
