"""A person's own network: weights that no state dict holds, each with its line; the pass in a process of its own."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from inspector.cli.main import run
from inspector.doctor.own_code import find_replaced, trace_code
from inspector.doctor.report import Trace
from inspector.doctor.run import Wish
from inspector.doctor.trace import trace_model
from inspector.errors import ModelError
from inspector.reports_from_json import report_from

SOURCE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.blocks = [nn.Conv2d(4, 4, 1), nn.ReLU()]
        self.heads: dict = {"a": nn.Linear(4, 2)}
        self.weights = [nn.Parameter(torch.ones(2))]
        self.scale = torch.ones(1)
        self.unused = torch.ones(1)

    def forward(self, x):
        x = self.conv(x)
        for block in self.blocks:
            x = block(x)
        x = self.heads["a"](x.mean((2, 3))) * self.weights[0]
        x = nn.Linear(2, 5)(x)
        return x * self.scale

class Sound(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.blocks = nn.ModuleList([nn.Conv2d(4, 4, 1)])
        self.by_name = {"first": self.conv}
        self.register_buffer("scale", torch.ones(1))
        self.last = None

    def forward(self, x):
        self.last = x = self.blocks[0](self.by_name["first"](x))
        return x.mean((2, 3)) * self.scale

def tokens(): return nn.Sequential(nn.Embedding(100, 8), nn.Linear(8, 2))
def sound(): return nn.Conv1d(4, 6, 3)
def identity(): return nn.Identity()
def lenet(): return nn.Sequential(nn.Conv2d(1, 6, 5), nn.Flatten(), nn.Linear(6 * 24 * 24, 10))
def two():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 2)
        def forward(self, a, b): return self.fc(a) + b
    return Two()
def nothing(): return 3
"""

TRAINING = """
import torch
from torch import nn
def main(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.fc = nn.Linear(3, 4)
    model.name = "mine"
    other.fc = nn.Linear(3, 4)
def sound(model):
    model.fc = nn.Linear(3, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def apart(model):
    model.fc = nn.Linear(3, 4)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "model.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def module(folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location("doctor_own_model", folder / "model.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["doctor_own_model"] = made
    spec.loader.exec_module(made)
    return made


def line(text: str) -> int:
    return next(i for i, one in enumerate(SOURCE.splitlines(), 1) if text in one)


def test_each_is_a_finding_with_its_line(module: Any) -> None:
    trace = trace_model(module.Net(), (torch.rand(1, 3, 8, 8),), label="net")
    found = {(f.id, f.subjects, dict(f.evidence)["line"]) for f in trace.findings}
    assert found == {
        ("layers-in-plain-container", ("blocks",), line("self.blocks = [")),
        ("layers-in-plain-container", ("heads",), line("self.heads")),
        ("layers-in-plain-container", ("weights",), line("self.weights = ")),
        ("tensor-in-plain-attribute", ("scale",), line("self.scale = torch")),
        ("layer-made-in-forward", ("",), line("nn.Linear(2, 5)")),
    }
    made = next(f for f in trace.findings if f.id == "layer-made-in-forward")
    assert "(5x2, 5)" in made.says and "model.py, line" in made.says
    blocks = next(f for f in trace.findings if f.subjects == ("blocks",))
    assert "plain list of 2 layers (20 weights)" in blocks.says and "nn.ModuleList" in blocks.remedy


def test_a_sound_network_has_none(module: Any) -> None:
    assert trace_model(module.Sound(), (torch.rand(1, 3, 8, 8),), label="net").findings == ()


def test_a_layer_replaced_behind_its_optimizer() -> None:
    (found,) = find_replaced(TRAINING, "train.py")
    assert dict(found.evidence)["line"] == 6 and found.subjects == ("model.fc",)
    assert "in line 5" in found.says


def test_the_pass_runs_in_a_process_of_its_own(folder: Path) -> None:
    trace = trace_code("code:model.py:Sound", Wish(shape=(3, 8, 8), batch=2))
    assert trace.target == "code:model.py:Sound" and trace.failure is None
    assert [c.path for c in trace.calls] == ["", "conv", "blocks.0"]
    assert trace.calls[0].outputs[0].shape == (2, 4)


warm = pytest.mark.usefixtures("warm_python")


@warm
def test_findings_come_back_with_their_lines(folder: Path) -> None:
    trace = trace_code("code:model.py:Net", Wish(shape=(3, 8, 8)))
    assert {f.id for f in trace.findings} == {
        "layers-in-plain-container",
        "tensor-in-plain-attribute",
        "layer-made-in-forward",
    }
    assert str(folder) not in str(trace)


@warm
def test_tensors_go_there_by_name(folder: Path) -> None:
    tensors = {"b": torch.ones(1, 2), "a": torch.ones(1, 3)}
    trace = trace_code("code:model.py:two", Wish(tensors=tensors, input_from="here", batch=4))
    assert trace.failure is None and trace.inputs[0][1].shape in ((4, 2), (4, 3))
    assert {name for name, _ in trace.inputs} == {"a", "b"}
    trace = trace_code("code:model.py:tokens", Wish(tensors={"x": torch.tensor([[1, 200]])}))
    assert trace.diagnosis is not None and trace.diagnosis.cause == "index-out-of-range"


@warm
def test_what_nobody_says_is_refused(folder: Path) -> None:
    with pytest.raises(ModelError, match="Nothing tells what this model takes"):
        trace_code("code:model.py:identity", Wish())
    with pytest.raises(ModelError, match="returned a int"):
        trace_code("code:model.py:nothing", Wish())
    assert trace_code("code:model.py:sound", Wish(shape=(4, 9))).failure is None
    assert trace_code("code:model.py:tokens", Wish(shape=(9,))).failure is None


def test_the_first_usual_input_that_runs_is_taken_and_what_does_not_run_is_said(folder: Path) -> None:
    trace = trace_code("code:model.py:lenet", Wish(batch=2))
    assert trace.failure is None
    assert "2x1x28x28" in trace.input_from
    assert trace.input_from.endswith("first layers; 1x224x224, 1x32x32 do not run")


def test_a_report_comes_back_as_it_went() -> None:
    bad = trace_model(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(3, 2)), (torch.rand(1, 3, 8, 8),), label="net")
    good = trace_model(nn.BatchNorm1d(3), (torch.rand(4, 3),), label="net")
    for trace in (bad, good):
        plain = json.loads(json.dumps(dataclasses.asdict(trace)))
        assert report_from(Trace, plain) == trace


@pytest.mark.parametrize(
    "change",
    [{"target": 3}, {"calls": [[]]}, {"operators": "1"}, {"training": 1}, {"modes": {"random": True}}],
)
def test_an_answer_that_is_no_report_is_refused(change: dict[str, object]) -> None:
    plain = json.loads(json.dumps(dataclasses.asdict(trace_model(nn.ReLU(), (torch.rand(1),), label="net"))))
    with pytest.raises((TypeError, ValueError)):
        report_from(Trace, {**plain, **change})


@warm
def test_the_command_runs_own_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "code:model.py:Sound", "--input-size", "3x8x8"]) == 0
    assert "blocks" in capsys.readouterr().out
    assert run(["trace", "code:model.py:Net", "--input-size", "1x8x8"]) == 1
    out = capsys.readouterr().out
    assert "Cause" in out and "model.py, line" in out and str(folder) not in out
