"""explain: how the answer is read, and which layer's output is read how, through the command line and back."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image

from inspector.cli.main import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A multi-label network as its file says, and a picture."""
    here = tmp_path_factory.mktemp("answers")
    torch.manual_seed(2)
    model = torchvision.models.resnet18(weights=None, num_classes=3)
    facts = {"preprocessing": {"size": 64, "mean": [0.5] * 3, "std": [0.5] * 3}}
    config = {"problem_type": "multi_label_classification"}
    torch.save({"state_dict": model.state_dict(), "config": config, **facts}, here / "net.pth")
    noise = np.random.default_rng(1).integers(0, 256, (8, 10, 3), dtype=np.uint8)
    Image.fromarray(noise).resize((100, 80)).save(here / "noise.png")
    return here


@pytest.fixture(scope="module")
def small(folder: Path) -> Path:
    """The same network for half the side, where hundreds of passes are made of a picture."""
    held = torch.load(folder / "net.pth")
    held["preprocessing"]["size"] = 32
    torch.save(held, folder / "small.pth")
    return folder / "small.pth"


def _explained(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> Any:
    assert run(["explain", str(folder / "net.pth"), str(folder / "noise.png"), "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)["explanation"]


def test_what_the_file_says_is_taken_and_can_be_said_otherwise(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    several = _explained(folder, capsys)
    assert several["answer"] == "several"
    for score in several["scores"]:
        assert score["probability"] == pytest.approx(1 / (1 + np.exp(-score["logit"])))
    one = _explained(folder, capsys, "--answer", "one")
    assert sum(score["probability"] for score in one["scores"]) == pytest.approx(1)
    numbers = _explained(folder, capsys, "--answer", "numbers")
    assert [score["probability"] for score in numbers["scores"]] == [None] * 3
    assert run(["explain", str(folder / "net.pth"), str(folder / "noise.png"), "--answer", "numbers"]) == 0
    said = capsys.readouterr().out
    assert "plain numbers" in said
    assert "%" not in said.partition("Output")[2]
    assert run(["explain", str(folder / "net.pth"), str(folder / "noise.png"), "--answer", "two"]) == 2


def test_trust_of_a_plain_number_says_what_it_has_no_value_for(
    folder: Path, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--answer", "numbers", "--trust", "--layer", "layer3"]
    assert run(["explain", str(small), str(folder / "noise.png"), *more]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Average drop is about a probability; the answer is a plain number" in said
    assert "Deletion" in said


@pytest.mark.parametrize(
    "asked",
    [
        ["--answer", "numbers", "--class", "1"],
        ["--layer", "layer3.1.relu:0=NHWC"],
        ["--layer", "layer3.1.relu:0", "--layer", "layer3.1.relu:1", "--fuse", "product"],
        ["--layer", "layer3.1.relu:0", "--layer", "layer3.1.relu:1"],
    ],
)
def test_the_manifests_own_command_line_makes_the_same_bytes(folder: Path, tmp_path: Path, asked: list[str]) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    command = ["explain", str(folder / "net.pth"), str(folder / "noise.png"), *asked, "--threads", "1"]
    assert run([*command, "--export", str(first)]) == 0
    manifest = json.loads((first / "manifest.json").read_text())
    words = shlex.split(manifest["command"].replace(str(first), str(second)))
    wanted = "numbers" if "numbers" in asked else "several"
    assert words[words.index("--answer") + 1] == wanted
    assert {entry["answer"] for entry in manifest["entries"]} == {wanted}
    for name in asked:
        if "layer" in name and not name.startswith("--"):
            assert name in words
    assert run(words[1:]) == 0
    for path in first.iterdir():
        if path.name != "manifest.json":
            assert path.read_bytes() == (second / path.name).read_bytes(), path.name
    rows = list(csv.DictReader((first / "maps.csv").open()))
    if asked.count("--layer") == 2 and "--fuse" not in asked:
        assert [row["layer"] for row in rows] == ["layer3.1.relu:0", "layer3.1.relu:1"]


def test_a_layout_that_does_not_fit_is_a_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["explain", str(folder / "net.pth"), str(folder / "noise.png"), "--layer"]
    assert run([*given, "layer3=1+8x8"]) == 2
    assert "puts out 256x4x4 for each picture" in " ".join(capsys.readouterr().err.split())
    assert run([*given, "layer3=NCWH"]) == 2
    assert "'NCWH' is no layout" in capsys.readouterr().err
