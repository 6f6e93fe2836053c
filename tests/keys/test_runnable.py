"""What may be run: every weight in its place; only what the model has no place for is left aside."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torchvision

from inspector.architectures.targets import target_of
from inspector.architectures.types import ArchitectureSpec
from inspector.errors import KeysDoNotFit
from inspector.keys.report import StepKind
from inspector.keys.runnable import plan_to_run
from inspector.readers import open_checkpoint

SPEC = ArchitectureSpec(library="torchvision", name="squeezenet1_1", num_classes=3)


def _saved(tmp_path: Path, extra: dict[str, torch.Tensor], *, classes: int = 3, without: str = "") -> Path:
    with torch.device("meta"):
        expected = torchvision.models.squeezenet1_1(num_classes=classes).state_dict()
    state = {f"model.{k}": torch.zeros(v.shape) for k, v in expected.items() if k != without}
    torch.save({"state_dict": {**state, **extra}}, tmp_path / "m.ckpt")
    return tmp_path / "m.ckpt"


def test_the_weights_of_a_loss_do_not_stand_in_the_way(tmp_path: Path) -> None:
    plan = plan_to_run(open_checkpoint(_saved(tmp_path, {"criterion.weight": torch.ones(3)})), target_of(SPEC))
    assert plan.complete
    assert [s.source for s in plan.steps if s.kind is StepKind.DROP] == ["criterion.weight"]
    assert {s.target for s in plan.steps if s.target} == {t.name for t in target_of(SPEC).tensors}


@pytest.mark.parametrize("damage", ["head", "missing"])
def test_a_model_that_would_not_be_the_files_own_is_not_run(tmp_path: Path, damage: str) -> None:
    path = (
        _saved(tmp_path, {}, classes=4) if damage == "head" else _saved(tmp_path, {}, without="features.3.squeeze.bias")
    )
    with pytest.raises(KeysDoNotFit):
        plan_to_run(open_checkpoint(path), target_of(SPEC))
