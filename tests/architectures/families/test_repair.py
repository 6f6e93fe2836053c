"""A family as the target of a repair: what is written, what is proved, and what is not run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.architectures.build import build_model
from inspector.architectures.recognise import recognise
from inspector.architectures.targets import parse_spec, parse_target, target_of_candidate
from inspector.checkpoint.types import Checkpoint
from inspector.errors import UsageError
from inspector.keys.apply import apply_plan, load_repaired
from inspector.keys.diagnose import diagnose
from inspector.keys.verify import verify_plan
from inspector.readers.opening import open_checkpoint

CIFAR = "cifar/resnet?num_classes=10&in_channels=3&blocks=2&width=4,4,8,16"
VIT = "torchvision/vit?num_classes=7&in_channels=3&hidden=64&layers=2&mlp=96&patch=12&positions=17"


def saved(label: str, path: Path, prefix: str = "") -> tuple[dict[str, torch.Tensor], Checkpoint]:
    """The model with seeded numbers, as a file; every tensor different from every other."""
    generator = torch.Generator().manual_seed(0)
    state = {
        name: torch.rand(tensor.shape, generator=generator) - (tensor.dim() > 1) / 2
        if tensor.is_floating_point()
        else tensor
        for name, tensor in build_model(parse_spec(label)).state_dict().items()
    }
    torch.save({prefix + name: tensor for name, tensor in state.items()}, path)
    return state, open_checkpoint(path)


def test_a_wrapped_file_comes_out_as_it_was(tmp_path: Path) -> None:
    state, checkpoint = saved(CIFAR, tmp_path / "wrapped.pth", "module.")
    best = recognise(checkpoint).best
    assert best is not None and best.spec.label == CIFAR
    target = target_of_candidate(best)
    report = diagnose(checkpoint, target)
    assert report.plan is not None
    placed = apply_plan(checkpoint, report.plan, spec=best.spec)
    assert placed.keys() == state.keys() and all(torch.equal(placed[name], state[name]) for name in state)
    proofs = {proof.id: proof.passed for proof in verify_plan(checkpoint, report.plan, target).proofs}
    assert proofs["strict-load"] and proofs["bytes"] and proofs["forward"]


def test_a_right_file_needs_nothing(tmp_path: Path) -> None:
    _, checkpoint = saved(CIFAR, tmp_path / "right.pth")
    report = diagnose(checkpoint, parse_target(CIFAR))
    assert report.plan is not None and report.plan.rules == ()


def test_another_size_is_not_forced_on_the_file(tmp_path: Path) -> None:
    _, checkpoint = saved(CIFAR, tmp_path / "small.pth")
    report = diagnose(checkpoint, parse_target(CIFAR.replace("4,4,8,16", "4,4,8,20")))
    assert report.plan is None


def test_what_depends_on_an_assumption_is_built_and_not_run(tmp_path: Path) -> None:
    _, checkpoint = saved(VIT, tmp_path / "vit.pth")
    best = recognise(checkpoint).best
    assert best is not None and best.spec.label == VIT and best.spec.assumed
    target = target_of_candidate(best)
    plan = diagnose(checkpoint, target).plan
    assert plan is not None
    proofs = {proof.id: proof for proof in verify_plan(checkpoint, plan, target).proofs}
    assert proofs["strict-load"].passed and proofs["forward"].passed is None
    assert "heads = 1 is assumed" in proofs["forward"].says
    with pytest.raises(UsageError, match="depends on what no shape tells: heads = 1"):
        load_repaired(checkpoint, plan, best.spec)
    confirmed = parse_target(f"{VIT}&heads=2")
    assert {p.id: p.passed for p in verify_plan(checkpoint, plan, confirmed).proofs}["forward"]
    assert confirmed.spec is not None and load_repaired(checkpoint, plan, confirmed.spec) is not None
