"""Counters of one training that cannot all be right, and the many ways of counting that can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inspector.findings import Severity
from inspector.health.checks.progress import CHECK
from tests.health.trainings import Run, findings


@pytest.mark.parametrize("epoch", [2, 3, 4])
def test_an_epoch_is_counted_when_it_begins_or_ends(tmp_path: Path, epoch: int) -> None:
    assert findings(tmp_path, Run("AdamW", "StepLR").epoch(3).saved(epoch=epoch), CHECK) == ()


def test_a_schedule_that_is_stepped_with_every_step_agrees_with_the_steps(tmp_path: Path) -> None:
    run = Run("AdamW", "LinearLR").epoch(12, per=1)
    assert findings(tmp_path, run.saved(epoch=2, global_step=12), CHECK) == ()


def test_a_schedule_of_more_steps_than_were_made_is_a_notice(tmp_path: Path) -> None:
    saved = Run("AdamW", "StepLR").epoch(3).saved()
    saved["scheduler"]["last_epoch"] = 500
    (found,) = findings(tmp_path, saved, CHECK)
    assert (found.id, found.severity) == ("progress-disagrees", Severity.NOTICE)
    assert found.says == "StepLR in scheduler has made 500 steps; epoch is 3, AdamW in optimizer counts 12."


def test_a_schedule_that_fell_behind_is_a_notice(tmp_path: Path) -> None:
    found = findings(tmp_path, Run("SGD", "StepLR").epoch(3).saved(epoch=40), CHECK)
    assert [f.severity for f in found] == [Severity.NOTICE]


def test_a_schedule_for_averaging_waits_for_its_time(tmp_path: Path) -> None:
    run = Run("SGD", "SWALR").step(3)
    assert findings(tmp_path, run.saved(epoch=40), CHECK) == ()


def test_an_optimizer_of_more_steps_than_the_file_counts_is_a_notice(tmp_path: Path) -> None:
    run = Run("AdamW").step(9)
    assert findings(tmp_path, run.saved(global_step=9), CHECK) == ()
    # With gradients added up, a batch is no step.
    assert findings(tmp_path, run.saved(global_step=36), CHECK) == ()
    (found,) = findings(tmp_path, run.saved(global_step=4), CHECK)
    assert found.says == "AdamW in optimizer has made 9 steps, and global_step is 4."


def test_an_optimizer_that_never_stepped_is_a_notice(tmp_path: Path) -> None:
    fresh: dict[str, Any] = Run("AdamW").saved(epoch=0)
    assert findings(tmp_path, fresh, CHECK) == ()
    (found,) = findings(tmp_path, {**fresh, "epoch": 30}, CHECK)
    assert (found.id, found.severity) == ("optimizer-not-stepped", Severity.NOTICE)


def test_plain_sgd_keeps_no_state_and_is_left_alone(tmp_path: Path) -> None:
    saved = Run("SGD").saved(epoch=30)
    saved["optimizer"]["state"] = {}
    assert findings(tmp_path, saved, CHECK) == ()


@pytest.mark.parametrize("count", [float("nan"), float("inf"), 10**400, None, "many"])
def test_a_count_that_is_none_is_not_compared(tmp_path: Path, count: object) -> None:
    saved = Run("AdamW", "StepLR").epoch(3).saved()
    saved["scheduler"]["last_epoch"] = count
    assert findings(tmp_path, saved, CHECK) == ()
    saved = Run("AdamW", "StepLR").epoch(3).saved(epoch=count)
    assert findings(tmp_path, saved, CHECK) == ()


@pytest.mark.parametrize(("every", "says"), [(1, ()), (16, ()), (60, ("AdamW in optimizer counts 5 steps, and ",))])
def test_an_optimizer_far_behind_its_schedule_and_counter_is_a_notice(
    tmp_path: Path, every: int, says: tuple[str, ...]
) -> None:
    """Not where gradients are gathered, as the schedule is stepped with every batch."""
    saved = Run("AdamW", "LinearLR").step(5).saved(global_step=5 * every)
    saved["scheduler"]["last_epoch"] = 5 * every
    found = findings(tmp_path, saved, CHECK)
    assert tuple(f.says[: len(one)] for f, one in zip(found, says, strict=True)) == says
