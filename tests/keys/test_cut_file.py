"""Files cut short: what is whole gets the names of the target, and what is not is said; never a whole repair."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import pytest
import safetensors
import safetensors.torch
import torch

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.checkpoint.types import Checkpoint
from inspector.cli.main import run
from inspector.compare.align import _by_plan
from inspector.compare.diff import _operand
from inspector.errors import ExportError, KeysDoNotFit
from inspector.exports.export import export_repaired
from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.report import StepKind
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint

# Of one size: in torch's old format the tensors lie in any order.
SHAPES = {"stem": (16, 4, 3, 3), "block.0": (8, 8, 3, 3), "block.1": (4, 16, 3, 3), "head": (9, 64)}


def state_of(prefix: str = "", seed: int = 0) -> OrderedDict[str, torch.Tensor]:
    torch.manual_seed(seed)
    leaves = OrderedDict((f"{name}.weight", torch.randn(shape)) for name, shape in SHAPES.items())
    return OrderedDict((f"{prefix}{name}", tensor) for name, tensor in leaves.items())


def cut(path: Path, tensors: object, share: float = 0.6, *, legacy: bool = False) -> Checkpoint:
    torch.save(tensors, path, _use_new_zipfile_serialization=not legacy)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    return open_checkpoint(path)


def goal_of(state: dict[str, torch.Tensor]) -> Target:
    tensors = tuple(TargetTensor(name=n, shape=tuple(t.shape), dtype="float32") for n, t in state.items())
    return Target(label="the target", kind=TargetKind.FILE, tensors=tensors)


def whole_by_bytes(path: Path, state: dict[str, torch.Tensor]) -> set[str]:
    """Which tensors stand in the file with all their bytes, found by looking for the bytes."""
    data = path.read_bytes()
    return {name for name, tensor in state.items() if tensor.numpy().tobytes() in data}


@pytest.mark.parametrize("legacy", [True, False])
def test_what_is_whole_gets_the_targets_names_and_the_rest_is_missing(tmp_path: Path, legacy: bool) -> None:
    state, goal = state_of("module."), goal_of(state_of())
    file = tmp_path / "half.pth"
    checkpoint = cut(file, {"state_dict": state}, legacy=legacy)
    have = {name.removeprefix("module.") for name in whole_by_bytes(file, state)}
    assert 0 < len(have) < 4
    plan = diagnose(checkpoint, goal, partial=True).plan
    assert plan.complete and plan.partial
    assert set(plan.missing) == set(state_of()) - have == set(plan.stays_initial)
    made = apply_plan(checkpoint, plan)
    assert set(made) == have
    assert all(torch.equal(made[name], state[f"module.{name}"]) for name in have)
    left_out = {step.source for step in plan.steps if step.kind is StepKind.DROP}
    assert left_out == {f"module.{name}" for name in plan.missing}
    assert all(proof.passed is not False for proof in verify_plan(checkpoint, plan, goal).proofs)


def test_it_says_so_and_is_an_error_until_a_part_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "half.pth"
    checkpoint = cut(file, {"state_dict": state_of("module.")})
    have = len(whole_by_bytes(file, state_of("module.")))
    asked = diagnose(checkpoint, goal_of(state_of()), partial=True)
    assert asked.says.startswith(f'{have} of 4 tensors are whole in the file and fit once "module." is dropped.')
    assert "initial value" in asked.says and "Lossless" not in asked.says and not asked.loads
    assert [f.severity for f in asked.findings if f.id == "missing-tensors"] == ["warning"]
    plain = diagnose(checkpoint, goal_of(state_of()))
    (lost,) = [f for f in plain.findings if f.id == "missing-tensors"]
    assert lost.severity == "error" and lost.says == f"{4 - have} of 4 tensors of the file are not whole in it."
    assert not plain.plan.partial and plain.plan.missing == ()
    with pytest.raises(KeysDoNotFit, match="not whole in half"):
        apply_plan(checkpoint, plain.plan)


def test_names_that_are_right_already_are_no_whole_repair_either(tmp_path: Path) -> None:
    report = diagnose(cut(tmp_path / "half.pth", state_of()), goal_of(state_of()), partial=True)
    assert report.plan.partial and report.plan.missing and "All 4" not in report.says
    with pytest.raises(ExportError, match="No lines load this file"):
        python_code(report.plan, file_name="half.pth")


def test_a_whole_file_is_told_as_before(tmp_path: Path) -> None:
    whole = cut(tmp_path / "whole.pth", {"state_dict": state_of("module.")}, share=1.0)
    asked, plain = (diagnose(whole, goal_of(state_of()), partial=partial) for partial in (True, False))
    assert asked == plain and not asked.plan.partial and not asked.plan.lost


def test_of_a_file_without_one_whole_tensor_nothing_is_written(tmp_path: Path) -> None:
    state = OrderedDict(big=torch.randn(64, 64))
    checkpoint = cut(tmp_path / "half.pth", {"module.big": state["big"]})
    plan = diagnose(checkpoint, goal_of(state), partial=True).plan
    assert not plan.partial
    with pytest.raises(ExportError, match="1 of 1 tensor is not whole"):
        export_repaired(checkpoint, plan, goal_of(state), tmp_path / "out.pth")
    assert not (tmp_path / "out.pth").exists()


def test_of_three_matrices_that_become_one_all_are_left_out_with_the_one_that_is_cut(tmp_path: Path) -> None:
    torch.manual_seed(0)
    parts = OrderedDict((f"attn.{kind}.weight", torch.randn(16, 16)) for kind in ("q_proj", "k_proj", "v_proj"))
    own = OrderedDict([("norm.weight", torch.randn(16)), *parts.items()])
    theirs = OrderedDict([("norm.weight", own["norm.weight"]), ("attn.in_proj_weight", torch.randn(48, 16))])
    checkpoint = cut(tmp_path / "half.pth", own, share=0.75)
    assert len(whole_by_bytes(tmp_path / "half.pth", own)) == 3
    order = {"qkv-order": "q-k-v"}
    plan = diagnose(checkpoint, goal_of(theirs), choose=order, partial=True).plan
    assert plan.complete and plan.missing == ("attn.in_proj_weight",)
    assert {step.source for step in plan.steps if step.kind is StepKind.DROP} == set(parts)
    made = apply_plan(checkpoint, plan)
    assert set(made) == {"norm.weight"} and torch.equal(made["norm.weight"], own["norm.weight"])
    assert all(proof.passed is not False for proof in verify_plan(checkpoint, plan, goal_of(theirs)).proofs)
    waits = diagnose(checkpoint, goal_of(theirs), partial=True).plan
    assert not waits.complete and waits.ambiguities and not waits.partial


def test_the_written_file_says_that_it_is_a_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, good, out = tmp_path / "half.pth", tmp_path / "good.pth", tmp_path / "part.safetensors"
    cut(file, {"state_dict": state_of("module."), "epoch": 3})
    torch.save(state_of(seed=1), good)
    words = ["repair", str(file), "--target", f"file:{good}", "--output", str(out)]
    assert run(words) == 1 and not out.exists()
    assert "--partial" in capsys.readouterr().err
    assert run([*words, "--partial"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "weight: not whole in the file" in told
    with safetensors.safe_open(out, "pt") as held:
        names, metadata = set(held.keys()), held.metadata()
    assert names and names < set(state_of()) and metadata["partial"] == f"{len(names)} of 4 tensors"


def test_compare_pairs_what_is_cut_by_its_name_all_the_same(tmp_path: Path) -> None:
    half = cut(tmp_path / "half.pth", state_of("module."))
    torch.save(state_of(seed=1), tmp_path / "good.pth")
    good = open_checkpoint(tmp_path / "good.pth")
    pairs = _by_plan(_operand(half, None), _operand(good, None))
    assert pairs is not None and len(pairs.of) == 4


def test_a_wrapped_file_that_nobody_knows_comes_out_of_its_wrapper_in_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "half.pth", tmp_path / "part.safetensors"
    state = state_of("module.")
    cut(file, {"state_dict": state})
    assert run(["unwrap", str(file), "--output", str(out)]) == 1
    assert "--salvage" in capsys.readouterr().err
    assert run(["unwrap", str(file), "--output", str(out), "--salvage"]) == 0
    have = {name.removeprefix("module.") for name in whole_by_bytes(file, state)}
    made = safetensors.torch.load_file(out)
    assert set(made) == have and all(torch.equal(made[name], state[f"module.{name}"]) for name in have)
