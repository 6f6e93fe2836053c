"""A strict load fits a network's twins as well, and the verification says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
import torchvision

from inspector.architectures.targets import parse_spec, target_of
from inspector.checkpoint.types import Checkpoint
from inspector.keys.diagnose import diagnose
from inspector.keys.proofs.twins import prove_which
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint

RESNET50 = target_of(parse_spec("torchvision/resnet50"))


def empty(path: Path, **beside: str) -> Checkpoint:
    torch.save({"state_dict": {"conv1.weight": torch.zeros(2)}, **beside}, path)
    return open_checkpoint(path)


def test_twins_that_compute_something_else_are_named(tmp_path: Path) -> None:
    proof = prove_which(empty(tmp_path / "a.pth"), RESNET50)
    assert proof is not None and proof.passed is None and proof.id == "which-twin"
    assert "timm/resnet50," not in proof.says and "that it was torchvision/resnet50 is not in the weights" in proof.says


def test_a_file_that_names_the_twin_is_quoted(tmp_path: Path) -> None:
    proof = prove_which(empty(tmp_path / "a.pth", arch="timm/resnetaa50"), RESNET50)
    assert proof is not None and proof.passed is None
    assert proof.says.startswith('timm/resnetaa50 is named in "arch" in the file, not torchvision/resnet50.')


def test_a_file_that_names_the_target_and_a_network_without_twins_need_no_note(tmp_path: Path) -> None:
    assert prove_which(empty(tmp_path / "a.pth", arch="resnet50"), RESNET50) is None
    alone = target_of(parse_spec("cifar/resnet?num_classes=10&in_channels=3&blocks=1&width=8,8,16,32"))
    assert prove_which(empty(tmp_path / "b.pth"), alone) is None
    assert prove_which(empty(tmp_path / "b.pth"), replace(RESNET50, spec=None)) is None


def test_it_stands_in_the_verification_and_does_not_undo_it(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = {
        f"module.{name}": tensor for name, tensor in torchvision.models.resnet50(weights=None).state_dict().items()
    }
    torch.save(state, tmp_path / "c.pth")
    checkpoint = open_checkpoint(tmp_path / "c.pth")
    plan = diagnose(checkpoint, RESNET50).plan
    assert plan is not None
    verification = verify_plan(checkpoint, plan, RESNET50)
    assert [p.id for p in verification.proofs if p.passed is None] == ["places", "which-twin"] and verification.holds
