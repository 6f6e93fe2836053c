"""`run` on a terminal: what it prints and writes, and how it ends."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from inspector.cli.main import run
from inspector.events.write import event_file
from tests.run.made import save, save_all, states


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four checkpoints, one broken, one text file, and a log whose last record is torn."""
    here = tmp_path / "training"
    here.mkdir()
    of = states(4)
    for n, state in enumerate(of, start=1):
        save(here, f"epoch_{n}.pth", state, epoch=n, loss=1.0 / n)
    (here / "epoch_5.pth").write_bytes((here / "epoch_1.pth").read_bytes()[:900])
    (here / "notes.txt").write_text("a long training")
    (here / "logs").mkdir()
    with event_file(here / "logs", 1e9) as writer:
        for step in range(3):
            writer.scalar("accuracy", step, 0.5 + step / 10)
    (log,) = (here / "logs").iterdir()
    log.write_bytes(log.read_bytes()[:-5])
    return here


def test_a_folder_is_told_with_its_log(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(folder)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("4 checkpoints of 7 tensors (284 numbers), epoch 1 to 4: all numbers are finite")
    assert "1 file could not be read and is no part of this: epoch_5.pth: " in text
    assert "Beside it: logs, 1 scalar logged by the training." in text and "The last record of events.out" in text
    assert "1 file passed over that hold no weights." in text


def test_json_has_every_series_and_csv_a_row_for_each(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder.parent / "out"
    assert run(["run", str(folder), "--json", "--by", "role", "--csv", str(out)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [member["name"] for member in report["members"]] == [f"epoch_{n}.pth" for n in (1, 2, 3, 4)]
    (tensor,) = (one for one in report["tensors"] if one["name"] == "fc.weight")
    assert tensor["series"]["moved"][0] is None and len(tensor["series"]["moved"]) == 4
    assert sum(tensor["histograms"][0]["counts"]) == pytest.approx(32)
    assert report["stated"]["loss"] == [1.0, 0.5, 1 / 3, 0.25]
    assert [scalar["tag"] for scalar in report["logs"][0]["scalars"]] == ["accuracy"]
    rows = list(csv.DictReader((out / "series.csv").open()))
    assert {row["role"] for row in rows} == {group["name"] for group in report["groups"]}
    assert len(rows) == 4 * len(report["groups"])
    members = list(csv.DictReader((out / "members.csv").open()))
    assert [row["stated loss"] for row in members] == ["1.0", "0.5", "0.3333333333333333", "0.25"]


def test_nan_ends_with_one_and_no_run_with_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = states(3)
    of[2]["fc.bias"][0] = float("nan")
    save_all(tmp_path, of)
    paths = [str(tmp_path / f"epoch_{n}.pth") for n in (1, 2, 3)]
    assert run(["run", *paths]) == 1
    assert run(["run", *paths[:2]]) == 0
    assert run(["run", paths[0]]) == 2
    assert "No run: epoch_1.pth has nothing beside it to be held against." in capsys.readouterr().out
    save(tmp_path, "other.pth", {"weight": torch.ones(3, 3)})
    assert run(["run", paths[0], str(tmp_path / "other.pth")]) == 2
    assert run(["run", str(tmp_path / "nowhere")]) == 2
    assert run(["run", *paths, "--by", "colour"]) == 2
    assert 'There are no rows by "colour". Choose one of: module, role, tensor.' in capsys.readouterr().err


def test_a_folder_with_its_trainers_state_is_one_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n, state in enumerate(states(3)):
        place = tmp_path / f"checkpoint-{100 * n}"
        place.mkdir()
        torch.save(state, place / "pytorch_model.bin")
        torch.save({"state": {}, "param_groups": []}, place / "optimizer.pt")
        (place / "trainer_state.json").write_text(json.dumps({"global_step": 300 - 100 * n, "epoch": 3 - n}))
    assert run(["run", str(tmp_path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [member["name"] for member in report["members"]] == ["checkpoint-200", "checkpoint-100", "checkpoint-0"]
    assert [member["at"] for member in report["members"]] == [100, 200, 300] and report["axis"] == "step"


def test_torch_is_not_loaded(tmp_path: Path) -> None:
    save_all(tmp_path, states(2))
    code = (
        "import sys; from inspector.cli.main import run; "
        f"code = run(['run', {str(tmp_path)!r}, '--json']); print('torch' in sys.modules, code, file=sys.stderr)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stderr.strip().endswith("False 0")
