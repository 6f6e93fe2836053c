"""explain --series: a strip of one run in one scale or each in its own, and what does not belong to it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.models import get_model

from inspector.cli.main import run

FACTS: dict[str, Any] = {"preprocessing": {"size": 32, "mean": [0.5] * 3, "std": [0.5] * 3}, "classes": ["a", "b"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two checkpoints of one network, one with other class names, one of another network, a picture."""
    here = tmp_path_factory.mktemp("series")
    torch.manual_seed(1)
    model = get_model("shufflenet_v2_x0_5", weights=None, num_classes=2)
    with torch.no_grad():
        model.fc.weight.normal_()
    for step in (1, 2):
        torch.save({"state_dict": model.state_dict(), "epoch": 0, "step": step, **FACTS}, here / f"{step}.pth")
        with torch.no_grad():
            model.fc.weight *= 3
    turned = {**FACTS, "classes": ["b", "a"]}
    torch.save({"state_dict": model.state_dict(), **turned}, here / "turned.pth")
    other = get_model("mobilenet_v3_small", weights=None, num_classes=2)
    torch.save({"state_dict": other.state_dict(), **FACTS}, here / "other.pth")
    noise = np.random.default_rng(0).integers(0, 256, (70, 90, 3), dtype=np.uint8)
    Image.fromarray(noise).save(here / "picture.png")
    return here


def _asked(folder: Path, *series: str) -> list[str]:
    words = ["explain", str(folder / "1.pth"), str(folder / "picture.png"), "--class", "1", "--threads", "1"]
    return words + [word for name in series for word in ("--series", str(folder / name))]


def test_a_table_has_the_place_and_the_likeness_to_the_last(folder: Path, tmp_path: Path) -> None:
    assert run([*_asked(folder, "2.pth"), "--csv", str(tmp_path / "t.csv")]) == 0
    first, last = csv.DictReader((tmp_path / "t.csv").open())
    assert [(row["epoch"], row["step"]) for row in (first, last)] == [("0", "1"), ("0", "2")]
    # The last layer's weights were multiplied: the same order of places.
    assert [float(row["agreement_with_last"]) for row in (first, last)] == [1, 1]
    assert float(last["raw_maximum"]) == pytest.approx(3 * float(first["raw_maximum"]), rel=1e-4)


def test_one_scale_is_seen_in_the_strip_and_not_in_the_numbers(folder: Path, tmp_path: Path) -> None:
    own, common = tmp_path / "own", tmp_path / "common"
    words = [*_asked(folder, "2.pth"), "--opacity", "1", "--method", "layer-cam"]
    assert run([*words, "--export", str(own)]) == 0
    assert run([*words, "--common-scale", "--export", str(common)]) == 0
    assert (own / "maps.npz").read_bytes() == (common / "maps.npz").read_bytes()
    assert "--common-scale" in json.loads((common / "manifest.json").read_text())["command"]
    pixels = [np.asarray(Image.open(place / "sheet.png")) for place in (own, common)]
    left, right = np.s_[8:232, 8:232], np.s_[8:232, 240:464]
    # The highest of all is the last one's: its picture stays, the first one's fades.
    assert np.array_equal(pixels[0][right], pixels[1][right])
    assert not np.array_equal(pixels[0][left], pixels[1][left])
    assert np.array_equal(pixels[0][left], pixels[0][right])


def test_a_fused_series_is_of_the_layer_that_was_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*_asked(folder, "2.pth"), "--fuse", "mean", "--layer", "stage2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["explanations"]
    assert [[layer["path"] for layer in one["layers"]] for one in found] == [["stage2"], ["stage2"]]


def test_what_does_not_belong_is_a_problem_and_the_others_go_on(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = _asked(folder, "other.pth", "turned.pth", "nowhere.pth", "2.pth")
    assert run([*words, "--json", "--csv", str(tmp_path / "t.csv"), "--export", str(tmp_path / "out")]) == 1
    found = json.loads(capsys.readouterr().out)
    assert len(found["explanations"]) == 2
    other, turned, nowhere = found["problems"]
    assert other.startswith("other.pth: It is torchvision/mobilenet_v3_small")
    assert turned.startswith("turned.pth: It calls class 0 'b'; the others call it 'a'.")
    assert nowhere.startswith("nowhere.pth: ")
    rows = list(csv.DictReader((tmp_path / "t.csv").open()))
    assert [row["checkpoint"] for row in rows] == ["1.pth", "other.pth", "turned.pth", "nowhere.pth", "2.pth"]
    assert [bool(row["error"]) for row in rows] == [False, True, True, True, False]
    assert {row["picture"] for row in rows} == {"picture.png"}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert [entry["checkpoint"] for entry in manifest["entries"]] == [0, 4]
    assert manifest["checkpoints"][4]["name"].endswith("2.pth") and manifest["checkpoints"][4]["sha256"]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["--common-scale"], "is for a series"),
        (["--series", "2.pth", "--common-scale", "--fuse", "mean"], "not fused"),
        (["--series", "2.pth", "--layer", "conv99"], "no layer 'conv99'"),
        (["--series", "2.pth", "--class", "7"], "there is no class 7"),
    ],
)
def test_what_means_nothing_is_a_sentence(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    asked: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(folder)
    assert run(["explain", "1.pth", "picture.png", *asked]) == 2
    assert says in capsys.readouterr().err
