"""`inspector graph`: the outline, the files, and what is said where there is no graph."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import torchvision

from inspector.cli.main import run
from tests.graph.test_from_onnx import control_flow
from tests.graph.test_from_pt2 import export
from tests.graph.zoo import Cnn


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(tmp_path_factory.mktemp("graph") / "net.pt2", Cnn(), torch.rand(1, 3, 8, 8))


def test_the_outline_shows_modules_folded_with_their_shapes(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", str(program)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Cnn: 35 operators, ")
    lines = [line.split() for line in out.splitlines()]
    assert ["0", "×4", "Residual", "1x8x8x8"] in lines
    assert ["4", "Residual", "1x16x4x4"] in lines
    assert not any("conv1" in line for line in out.splitlines())
    assert run(["graph", str(program), "--depth", "3"]) == 0
    assert "conv1" in capsys.readouterr().out


def test_the_outline_says_where_a_part_takes_from_unless_it_is_the_one_before(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["graph", str(program), "--depth", "3"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "conv2 Conv2d 1x8x8x8" in lines
    assert "add_ 1x16x4x4 conv2, shortcut" in lines


def test_the_name_of_out_says_how_it_is_written(program: Path, tmp_path: Path) -> None:
    for name, start in (
        ("a.svg", "<svg"),
        ("a.dot", "digraph"),
        ("a.mmd", "flowchart"),
        ("a.json", "{"),
        ("a.txt", "Cnn"),
    ):
        assert run(["graph", str(program), "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    assert len(list(tmp_path.iterdir())) == 5


def test_json_has_nodes_edges_and_groups(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", str(program), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert {"nodes", "groups", "edges", "origin", "remarks"} == set(made)
    assert {"source", "target", "tensor", "shape", "dtype"} == set(made["edges"][0])
    assert run(["graph", str(program), "--format", "model-explorer"]) == 0
    assert json.loads(capsys.readouterr().out)["graphs"][0]["id"] == "net.pt2"


def test_an_existing_file_and_the_input_itself_are_not_replaced(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.svg").write_text("mine")
    assert run(["graph", str(program), "-o", str(tmp_path / "a.svg")]) == 2
    assert (tmp_path / "a.svg").read_text() == "mine"
    assert run(["graph", str(program), "-o", str(program), "--overwrite", "--format", "dot"]) == 2
    assert "is a file that this reads" in capsys.readouterr().err
    assert run(["graph", str(program), "-o", str(tmp_path / "a.svg"), "--overwrite"]) == 0


def test_branches_of_an_onnx_model_are_in_the_outline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.onnx").write_bytes(control_flow().SerializeToString())
    assert run(["graph", str(tmp_path / "a.onnx")]) == 0
    out = capsys.readouterr().out
    assert "then_branch" in out and "else_branch" in out


def test_two_ways_to_say_how_it_is_written_are_refused(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", str(program), "--json", "--format", "dot"]) == 2
    assert "both say how" in capsys.readouterr().err


def test_a_target_and_a_recognised_checkpoint_are_traced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", "torchvision/resnet18", "--depth", "1"]) == 0
    target = capsys.readouterr().out
    assert target.startswith("ResNet: ") and "one forward pass" in target and "1x64x112x112" in target
    torch.save(torchvision.models.resnet18().state_dict(), tmp_path / "net.pth")
    assert run(["graph", str(tmp_path / "net.pth"), "--depth", "1"]) == 0
    assert capsys.readouterr().out == target
    assert run(["graph", "torchvision/resnet18", "--input-size", "3x64x64", "--depth", "1"]) == 0
    assert "1x64x32x32" in capsys.readouterr().out


def test_weights_that_nobody_knows_have_no_graph_and_the_sentence_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save({"own.weight": torch.zeros(3, 7)}, tmp_path / "net.pth")
    assert run(["graph", str(tmp_path / "net.pth")]) == 2
    err = capsys.readouterr().err
    assert "carries no graph" in err and "code:model.py:build" in err


def test_ones_own_code_is_traced_in_its_own_process(
    tmp_path: Path, warm_python: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "net.py").write_text(
        "from torch import nn\n\ndef build():\n    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())\n"
    )
    monkeypatch.chdir(tmp_path)
    assert run(["graph", "code:net.py:build", "--input-size", "3x8x8"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["0", "Conv2d", "1x4x6x6"] in lines
