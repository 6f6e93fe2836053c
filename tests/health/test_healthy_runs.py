"""Trainings in which nothing is wrong: every optimizer and every schedule of torch, saved as people save them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.optim import swa_utils

from inspector.health.examine import examine
from inspector.readers import open_checkpoint
from tests.health.trainings import OPTIMIZERS, SCHEDULES, Run, copied, findings, loud, one


@pytest.mark.parametrize("grouped", [False, True], ids=["one group", "groups"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_no_optimizer_raises_a_warning(tmp_path: Path, optimizer: str, grouped: bool) -> None:
    run = Run(optimizer, "StepLR", grouped=grouped).epoch(3)
    found = findings(tmp_path, run.saved(scaler=torch.amp.GradScaler("cpu").state_dict()))
    assert loud(found) == []
    assert f" ({optimizer} in optimizer" in one(found, "resuming").says
    assert loud(findings(tmp_path, run.lightning())) == []
    # As the transformers trainer writes optimizer.pt: nothing beside it.
    assert loud(findings(tmp_path, copied(run.optimizer.state_dict()))) == []


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_no_schedule_raises_a_warning(tmp_path: Path, schedule: str) -> None:
    run = Run("SGD", schedule).epoch(4)
    found = findings(tmp_path, run.saved())
    assert loud(found) == []
    kind = "LambdaLR or MultiplicativeLR" if schedule in ("LambdaLR", "MultiplicativeLR") else schedule
    assert f"{kind} in scheduler has made " in one(found, "resuming").says
    assert loud(findings(tmp_path, run.lightning())) == []
    assert run.schedule is not None
    assert loud(findings(tmp_path, copied(run.schedule.state_dict()))) == []


@pytest.mark.parametrize("frozen", [("emb.weight",), ("conv.weight", "conv.bias"), ("bn.weight", "head.bias")])
def test_frozen_parts_raise_no_warning(tmp_path: Path, frozen: tuple[str, ...]) -> None:
    assert loud(findings(tmp_path, Run("AdamW", "CosineAnnealingLR", frozen=frozen).epoch(3).saved())) == []


@pytest.mark.parametrize("steps", [0, 1])
def test_the_very_beginning_raises_no_warning(tmp_path: Path, steps: int) -> None:
    run = Run("AdamW", "LinearLR").step(steps)
    average = swa_utils.AveragedModel(run.model)
    average.update_parameters(run.model)
    saved = run.saved(ema=average.state_dict(), scaler=torch.amp.GradScaler("cpu").state_dict())
    found = findings(tmp_path, saved)
    assert loud(found) == []
    assert "equal the trained ones" in one(found, "average-never-updated").says


def test_two_networks_and_their_optimizers_raise_no_warning_and_are_not_confused(tmp_path: Path) -> None:
    first, second = Run("Adam").step(6), Run("Adam").step(3)
    saved = {"netG": first.model.state_dict(), "netD": second.model.state_dict()}
    saved |= {"optG": first.optimizer.state_dict(), "optD": second.optimizer.state_dict(), "epoch": 3}
    found = findings(tmp_path, copied(saved))
    assert loud(found) == []
    # Both fit either network: nothing is named.
    assert [f.subjects for f in found if f.id == "rows-without-gradient"] == [("entry 0",), ("entry 0",)]


def test_half_precision_and_a_learning_rate_that_is_a_tensor_raise_no_warning(tmp_path: Path) -> None:
    run = Run("AdamW")
    run.model.bfloat16()
    run.optimizer.param_groups[0]["lr"] = torch.tensor(0.01)
    found = findings(tmp_path, run.step(5).saved())
    assert loud(found) == []
    assert one(found, "resuming").says == "Resuming now would train at lr 0.01 (AdamW in optimizer, 5 steps done)."


def test_without_the_rest_of_the_file_nothing_is_claimed(tmp_path: Path) -> None:
    torch.save(Run().step(5).saved(), tmp_path / "run.pt")
    found = examine(open_checkpoint(tmp_path / "run.pt"), whole=False).findings
    assert [f.id for f in found] == ["resuming"]
