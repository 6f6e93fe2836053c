"""Where `explain` writes: never over what it reads, nothing half, and sentences for places where nothing can be."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image

from inspector.cli.main import run

STEPS = '{"size": 16, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}'
CODE = """
import os, sys
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4, 2)
    def forward(self, x):
        print("forward"); os.write(1, b"raw\\n")
        return self.fc(self.conv(x).mean((2, 3)))

class Leaving(Net):
    def forward(self, x): sys.exit(0)

def build():
    print("building"); os.write(1, b"raw\\n")
    return Net()
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("outputs")
    torch.manual_seed(3)
    model = torchvision.models.get_model("mobilenet_v3_small", weights=None, num_classes=4).eval()
    torch.save(model.state_dict(), here / "net.pth")
    noise = np.random.default_rng(0).integers(0, 256, (20, 24, 3), dtype=np.uint8)
    Image.fromarray(noise).save(here / "overlay.png")
    (here / "words.txt").write_text("a\nb\nc\nd\n")
    (here / "own_outputs.py").write_text(CODE)
    state = {"conv.weight": torch.randn(4, 3, 3, 3), "conv.bias": torch.randn(4)}
    torch.save({**state, "fc.weight": torch.randn(2, 4), "fc.bias": torch.randn(2)}, here / "own.pth")
    return here


@pytest.fixture
def here(made: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(made)
    before = {p.name: p.read_bytes() for p in made.iterdir() if p.is_file()}
    yield made
    assert {p.name: p.read_bytes() for p in made.iterdir() if p.is_file()} == before
    assert not list(made.rglob(".writing-*"))


EXPLAIN = ["explain", "net.pth", "overlay.png", "--preprocessing", STEPS, "--names", "words.txt"]


@pytest.mark.parametrize("option", ["--output", "--maps", "--csv"])
@pytest.mark.parametrize("name", ["net.pth", "overlay.png", "words.txt", "./overlay.png"])
def test_what_is_read_is_never_written(here: Path, option: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*EXPLAIN, option, name]) == 2
    assert f"{Path(name).name} is a file that this reads" in capsys.readouterr().err


def test_nor_by_an_export_into_their_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The picture is called as the overlay in an export is.
    assert run([*EXPLAIN, "--export", "."]) == 2
    assert "overlay.png is a file that this reads" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="devices and pipes")
@pytest.mark.parametrize("option", ["--output", "--maps", "--csv"])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("folder", "is a folder"),
        ("pipe", "is no ordinary file"),
        ("/dev/full", "is no ordinary file"),
        ("none/out.png", "The folder of out.png does not exist"),
        ("net.pth/out.png", "The folder of out.png does not exist"),
        ("x" * 5000, "File name too long"),
        ("/proc/out.png", "out.png cannot be written"),
    ],
)
def test_a_place_where_nothing_can_be_is_a_sentence(
    here: Path, tmp_path: Path, option: str, name: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    where = str(tmp_path / name) if name in ("folder", "pipe") else name
    assert run([*EXPLAIN, option, where]) == 2
    told = capsys.readouterr()
    assert told.out == "" and says in told.err and len(told.err.splitlines()) == 1 and len(told.err) < 300


def test_an_export_folder_that_cannot_be_is_a_sentence(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("words.txt", "words.txt/inside", "x" * 5000, "/proc/folder"):
        assert run([*EXPLAIN, "--export", name]) == 2
        assert "cannot be made a folder" in capsys.readouterr().err


def test_a_failure_leaves_no_half_file(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from inspector.cli import explaining

    (tmp_path / "old.csv").write_text("precious")

    def full(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(explaining, "table_csv", full)
    places = ["--maps", str(tmp_path / "maps.npz"), "--csv", str(tmp_path / "old.csv")]
    assert run([*EXPLAIN, *places]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"old.csv": "precious"}
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert run([*EXPLAIN, *places]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["maps.npz", "old.csv"]
    with np.load(tmp_path / "maps.npz") as arrays:
        assert set(arrays.files) == {"raw", "heat", "logits"}


OWN = ["explain", "own.pth", "overlay.png", "--preprocessing", STEPS, "--target"]


def test_what_own_code_prints_gets_into_no_report(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run([*OWN, "code:own_outputs.py:build", "--json"]) == 0
    told = capfd.readouterr()
    assert json.loads(told.out)["explanation"]["layer"]["path"] == "conv"
    assert {"building", "forward", "raw"} <= set(told.err.split())


def test_own_code_that_ends_the_program_is_a_sentence(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run([*OWN, "code:own_outputs.py:Leaving"]) == 2
    assert "The code ended the program by itself, with exit code 0." in capfd.readouterr().err


def test_an_export_of_a_folder_holds_an_overlay_of_each_picture_at_its_own_size(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    sizes = [(90, 60), (40, 70)]
    for number, size in enumerate(sizes):
        Image.new("RGB", size, (200, 40, 40 * number)).save(pictures / f"{number}.png")
    assert run(["explain", "net.pth", str(pictures), "--preprocessing", STEPS, "--export", str(tmp_path / "out")]) == 0
    for number, size in enumerate(sizes):
        with Image.open(tmp_path / "out" / f"{number:04d}_overlay.png") as drawn:
            assert drawn.size == size
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert "0000_overlay.png" in told["files"] and "0001_overlay.png" in told["files"]
    assert all("centres" in entry["layer"] for entry in told["entries"])
