"""The command previews, writes, refuses and prints code; `open --groups` names an optimizer's parameters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from inspector.cli.main import run
from tests.surgery.networks import Detector, trained


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    torch.save(trained(Detector()).state_dict(), tmp_path / "net.pth")
    return tmp_path


def test_without_an_output_it_is_a_preview(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["surgery", "net.pth", "--drop", "neck,classes"]) == 0
    out = capsys.readouterr().out
    assert "Nothing was written: this is a preview" in out and "neck.{weight,bias}" in out
    assert sorted(path.name for path in folder.iterdir()) == ["net.pth"]


def test_every_path_is_as_the_file_has_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = ["--extract", "body", "--drop", "body.1", "--drop", "neck"]
    assert run(["surgery", "net.pth", *steps, "-o", "o.safetensors", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["surgery"]["steps"] == ["drop body.1", "drop neck", "extract body"]
    assert report["freeze"] is None and report["export"]["tensors"] == 9
    assert sorted(load_file(folder / "o.safetensors"))[0] == "0.bias"


def test_a_head_with_seed_and_zeros(folder: Path) -> None:
    options = ["--head", "boxes=3", "--init", "zeros", "-o", "o.pth"]
    assert run(["surgery", "net.pth", *options]) == 0
    assert not torch.load(folder / "o.pth")["boxes.weight"].any()
    assert run(["surgery", "net.pth", *options]) == 2  # the name is taken
    assert run(["surgery", "net.pth", "--head", "boxes=3", "--seed", "2", "-o", "o.pth", "--overwrite"]) == 0
    torch.manual_seed(2)
    assert torch.equal(torch.load(folder / "o.pth")["boxes.weight"], nn.Linear(6, 3).weight)


def test_a_refusal_writes_nothing_and_exits_with_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["surgery", "net.pth", "--head", "neck=3", "-o", "o.pth", "--json"]) == 1
    said = capsys.readouterr()
    assert "neck is no head for sure" in said.err and json.loads(said.out)["export"] is None
    assert not (folder / "o.pth").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "What is to be done?"),
        (["-o", "o.pth", "--freeze", "body"], "What is to be done?"),
        (["--head", "boxes"], '"boxes" names no head'),
        (["--head", "boxes=many"], "names no head"),
        (["--head", "boxes=3", "--init", "ones"], 'does not begin with "ones"'),
        (["--head", "boxes=3", "--seed", "-1"], "-1 is no seed"),
        (["--keep-prefix"], "--keep-prefix is about what --extract takes out"),
        (["--drop", "neck", "--accept", "extra-tensors"], '"extra-tensors" is nothing to accept'),
        (["--drop", "neck", "--with-optimizer"], "--with-optimizer is about the written file"),
        (["--drop", "nck"], "Did you mean neck"),
        (["--drop", "neck", "-o", "net.pth"], "is a file that this reads"),
    ],
)
def test_options_that_mean_nothing(
    folder: Path, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["surgery", "net.pth", *options]) == 2
    assert says in capsys.readouterr().err


def test_the_code_that_freezes_is_printed_as_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["surgery", "net.pth", "--freeze", "body", "--lr-factor", "0.5"]) == 0
    text = capsys.readouterr().out
    found = {"model": Detector()}
    exec(text[text.index("import torch") :], found)
    assert not found["model"].body[0].weight.requires_grad
    assert run(["surgery", "net.pth", "--head", "boxes=2", "-o", "o.pth", "--freeze", "body", "--json"]) == 0
    assert "'o.pth'" in json.loads(capsys.readouterr().out)["freeze"]["text"]


def test_several_sets_of_weights_are_asked_about(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = {"generator": Detector().state_dict(), "discriminator": Detector().state_dict()}
    torch.save(both, folder / "gan.pth")
    assert run(["surgery", "gan.pth", "--drop", "neck"]) == 1
    assert "Say with --state" in capsys.readouterr().err
    assert run(["surgery", "gan.pth", "--drop", "neck", "--state", "generator"]) == 0


def trained_once(optimizer: torch.optim.Optimizer, model: nn.Module, path: Path) -> None:
    model(torch.randn(2, 3)).sum().backward()
    optimizer.step()
    torch.save({"state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


def test_groups_by_kind_of_parameter_are_asked_about(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    weights = [p for name, p in model.named_parameters() if name.endswith("weight")]
    biases = [p for name, p in model.named_parameters() if name.endswith("bias")]
    groups = [{"params": weights, "weight_decay": 0.1}, {"params": biases}]
    trained_once(torch.optim.AdamW(groups, weight_decay=0.0), model, folder / "a.pth")
    options = ["surgery", "a.pth", "--drop", "4", "--with-optimizer", "-o", "o.pth"]
    assert run(options) == 1
    assert "--accept optimizer-groups" in capsys.readouterr().err
    assert run([*options, "--accept", "optimizer-groups"]) == 0
    made = torch.load(folder / "o.pth")["optimizer"]["param_groups"]
    assert [(len(group["params"]), group["weight_decay"]) for group in made] == [(4, 0.1), (4, 0.0)]


def test_groups_are_shown_by_the_names_of_their_parameters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5), nn.Linear(5, 2))
    groups = [{"params": list(model[2].parameters()), "lr": 0.5}, {"params": list(model[:2].parameters()), "lr": 0.1}]
    trained_once(torch.optim.SGD(groups, momentum=0.9, weight_decay=0.01), model, folder / "a.pth")
    assert run(["open", "a.pth", "--groups", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["optimizers"]
    assert one["by"] == "index and shape" and not one["refusal"] and one["outside"] == []
    assert [group["names"] for group in one["groups"]] == [
        ["2.weight", "2.bias"],
        ["0.weight", "0.bias", "1.weight", "1.bias"],
    ]
    assert [dict(group["settings"])["lr"] for group in one["groups"]] == ["0.5", "0.1"]
    assert run(["open", "a.pth", "--groups"]) == 0
    out = capsys.readouterr().out
    assert "In every group: momentum 0.9" in out and "2.{weight,bias} (2)" in out


def test_groups_that_prove_nothing_keep_their_settings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    groups = [{"params": list(model[1].parameters()), "lr": 0.5}, {"params": list(model[0].parameters()), "lr": 0.1}]
    trained_once(torch.optim.AdamW(groups), model, folder / "same.pth")
    trained_once(torch.optim.SGD(groups), model, folder / "none.pth")
    for name, why in (("same.pth", "several ways that fit equally well"), ("none.pth", "keeps no tensor")):
        assert run(["open", name, "--groups", "--json"]) == 0
        (one,) = json.loads(capsys.readouterr().out)["optimizers"]
        assert why in one["refusal"] and [group["names"] for group in one["groups"]] == [[], []]
        assert [(group["entries"], dict(group["settings"])["lr"]) for group in one["groups"]] == [
            (2, "0.5"),
            (2, "0.1"),
        ]
    assert run(["open", "net.pth", "--groups"]) == 0
    assert "The file holds no optimizer." in capsys.readouterr().out


def test_frozen_parameters_stand_in_no_group(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5), nn.Linear(5, 2))
    trained_once(torch.optim.AdamW(model[1:].parameters()), model, folder / "a.pth")
    assert run(["open", "a.pth", "--groups", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["optimizers"]
    assert one["outside"] == ["0.weight", "0.bias"]
    assert dict(one["groups"][0]["settings"])["betas"] == "(0.9, 0.999)"
