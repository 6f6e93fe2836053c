"""A part written to a file, by Python and by the command line, and loaded by torch with exactly the listed gaps."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict

import pytest
import safetensors.torch
import torch
from torch import nn

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.errors import ExportError
from inspector.exports.export import export_repaired
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint


def net() -> nn.Module:
    made = nn.Module()
    made.features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 4, 3))
    made.head = nn.Linear(4, 2)
    return made


def target(model: nn.Module) -> Target:
    tensors = tuple(
        TargetTensor(name=n, shape=tuple(t.shape), dtype=str(t.dtype).removeprefix("torch."))
        for n, t in model.state_dict().items()
    )
    return Target(label="the model", kind=TargetKind.FILE, tensors=tensors)


@pytest.fixture
def part(tmp_path):
    """The features alone, wrapped, in a file; and the model they are of."""
    torch.manual_seed(1)
    model = net()
    kept = OrderedDict((f"module.{k}", v) for k, v in model.state_dict().items() if k.startswith("features"))
    torch.save(kept, tmp_path / "part.pth")
    return model, tmp_path / "part.pth"


@pytest.mark.parametrize(("writer", "load"), [("pth", torch.load), ("safetensors", safetensors.torch.load_file)])
def test_the_file_holds_what_is_placed_and_nothing_else(writer, load, part, tmp_path):
    model, path = part
    checkpoint = open_checkpoint(path)
    plan = diagnose(checkpoint, target(model), partial=True).plan
    report = export_repaired(checkpoint, plan, target(model), tmp_path / "out", writer=writer)
    assert report.stays_initial == ("head.weight", "head.bias") and report.verification.holds
    state = load(tmp_path / "out")
    fresh = net()
    found = fresh.load_state_dict(state, strict=False)
    assert set(found.missing_keys) == {"head.weight", "head.bias"} and not found.unexpected_keys
    assert all(torch.equal(fresh.state_dict()[k], v) for k, v in model.state_dict().items() if "head" not in k)


def test_without_being_asked_for_a_part_nothing_is_written(part, tmp_path):
    model, path = part
    checkpoint = open_checkpoint(path)
    with pytest.raises(ExportError, match="stays incomplete: 2 tensors are missing"):
        plan = diagnose(checkpoint, target(model)).plan
        export_repaired(checkpoint, plan, target(model), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "inspector", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_commands(part, tmp_path):
    model, path = part
    goal, out = tmp_path / "goal.pth", tmp_path / "out.pth"
    torch.save(model.state_dict(), goal)
    assert run("repair", path, "--target", f"file:{goal}", "-o", out).returncode == 1 and not out.exists()
    done = run("repair", path, "--target", f"file:{goal}", "--partial", "-o", out)
    assert done.returncode == 0 and "head.weight, head.bias" in done.stdout
    assert set(torch.load(out)) == {k for k in model.state_dict() if "head" not in k}
    code = run("diagnose", path, "--target", f"file:{goal}", "--partial", "--code").stdout
    fresh = net()
    exec(code.replace(repr(path.name), repr(str(path))), {"model": fresh})
    assert torch.equal(fresh.features[0].weight, model.features[0].weight)


def test_an_optimizer_by_command(tmp_path):
    model = net()
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    state = OrderedDict((f"module.{k}", v) for k, v in model.state_dict().items())
    torch.save({"epoch": 4, "model": state, "optimizer": optimizer.state_dict()}, tmp_path / "run.pth")
    torch.save(model.state_dict(), tmp_path / "goal.pth")
    goal = f"file:{tmp_path / 'goal.pth'}"
    done = run("repair", tmp_path / "run.pth", "--target", goal, "--with-optimizer", "-o", tmp_path / "out.pth")
    assert done.returncode == 0 and "Adam-like state of 8 parameters follows them" in done.stdout
    made = torch.load(tmp_path / "out.pth", weights_only=True)
    assert made["epoch"] == 4 and list(made["model"]) == list(model.state_dict())
    torch.optim.Adam(net().parameters()).load_state_dict(made["optimizer"])
