"""The commands events and tensorboard."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest
import torch

from inspector.cli.main import run
from inspector.events.find import find_event_runs
from inspector.events.read import read_events
from tests.events.made import points, scalars

NAME = "events.out.tfevents.1.x"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for name, count in (("a", 3), ("b/c", 2)):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / NAME).write_bytes(scalars(count, "=loss"))
    return tmp_path


def test_runs_of_a_folder(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["events", str(runs)]) == 0
    out = capsys.readouterr().out
    assert "b/c  1 file" in out and "=loss" in out and "0 to 2" in out and "2023-11-14" in out


def test_json_has_every_point(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["events", str(runs / "a"), "--json"]) == 0
    (log,) = json.loads(capsys.readouterr().out)["runs"]
    assert log["scalars"][0]["points"] == [[n, float(n), 1_700_000_000.0 + n] for n in range(3)]
    assert log["files"][0]["records"] == 5 and log["findings"] == []


def test_csv_has_every_scalar_and_runs_no_formula(runs: Path, tmp_path: Path) -> None:
    assert run(["events", str(runs), "--csv", str(tmp_path / "out.csv")]) == 0
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["run", "tag", "step", "wall_time", "value"] and len(rows) == 1 + 5
    assert rows[-1] == ["b/c", "'=loss", "1", "1700000001.0", "1.0"]
    assert run(["events", str(runs), "--csv", str(tmp_path / "out.csv")]) == 2


def test_findings_count(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = runs / "a" / NAME
    path.write_bytes(path.read_bytes()[:-3])
    assert run(["events", str(runs)]) == 0
    assert "events-cut" in capsys.readouterr().out
    assert run(["events", str(runs), "--fail-on", "notice"]) == 1


def test_what_is_no_event_file_is_said_and_counts(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "a" / NAME).write_bytes(b"something else entirely")
    assert run(["events", str(runs)]) == 1
    heard = capsys.readouterr()
    assert "is no TensorBoard event file" in heard.err and "=loss" in heard.out
    assert run(["events", str(runs / "a")]) == 2


@pytest.mark.parametrize("path", ["nothing", "."])
def test_nothing_to_read(tmp_path: Path, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["events", str(tmp_path / path)]) == 2
    assert "nothing" in capsys.readouterr().err.lower() or path == "."


def test_beside_a_checkpoint(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "a" / "model.pth").write_bytes(b"")
    assert run(["events", str(runs / "a" / "model.pth"), "--beside"]) == 0
    out = capsys.readouterr().out
    assert "a  1 file" in out and "b/c" not in out


@pytest.fixture
def series(tmp_path: Path) -> list[str]:
    """Two checkpoints of a training, the later one first in the row."""
    paths = []
    for epoch, scale in ((4, 1.5), (2, 1.0)):
        path = tmp_path / f"{epoch}.pth"
        weights = {"fc.weight": torch.full((4, 5), scale), "fc.bias": torch.zeros(4)}
        torch.save({"state_dict": weights, "epoch": epoch, "loss": scale / 2}, path)
        os.utime(path, (1e9 + epoch, 1e9 + epoch))
        paths.append(str(path))
    return paths


def test_checkpoints_become_a_run(series: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = tmp_path / "tb"
    assert run(["tensorboard", *series, "--output", str(where)]) == 0
    heard = capsys.readouterr()
    assert "epochs that the files state" in heard.out and "No graph" in heard.err
    ((found,),) = [find_event_runs(where).runs]
    log = read_events(found.paths)
    assert log.findings == () and found.paths[0].name.startswith("events.out.tfevents.1000000004.")
    assert points(log, "rms/fc.weight") == [(2, 1.0), (4, 1.5)]
    assert points(log, "stated/loss") == [(2, 0.5), (4, 0.75)]
    assert points(log, "update ratio/fc.weight") == [(4, 0.5)] == points(log, "checkpoint/update ratio")
    assert [point.step for point in log.histograms[0].points] == [2, 4]
    series_of = log.scalar("rms/fc.weight")
    assert series_of is not None and [when for _, _, when in series_of] == [1e9 + 2, 1e9 + 4]


def test_the_same_files_make_the_same_bytes(series: list[str], tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert run(["tensorboard", *series, "--output", str(tmp_path / name)]) == 0
    one, two = (next((tmp_path / name).iterdir()) for name in ("one", "two"))
    assert one.name == two.name and one.read_bytes() == two.read_bytes()


def test_a_folder_with_event_files_is_refused(
    series: list[str], runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted((runs / "a").iterdir())
    assert run(["tensorboard", *series, "--output", str(runs / "a")]) == 2
    assert "has event files already" in capsys.readouterr().err
    assert sorted((runs / "a").iterdir()) == before


def test_a_recognised_file_has_its_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from torchvision.models import squeezenet1_1

    torch.save(squeezenet1_1(num_classes=3).state_dict(), tmp_path / "net.pth")
    assert run(["tensorboard", str(tmp_path / "net.pth"), "--output", str(tmp_path / "tb"), "--json"]) == 0
    heard = json.loads(capsys.readouterr().out)
    assert heard == {"output": "tb", "axis": "order", "steps": [[0, str(tmp_path / "net.pth")]], "remarks": []}
    log = read_events(find_event_runs(tmp_path / "tb").runs[0].paths)
    assert log.files[0].graph_nbytes > 10_000
