"""Which event files are found in a folder, and beside a checkpoint of which loggers."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.events import find
from inspector.events.find import event_runs_beside, find_event_runs

NAME = "events.out.tfevents.1700000000.host.1.0"


def _touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


def test_a_folder_with_event_files_is_a_run(tmp_path: Path) -> None:
    for path in (f"b/{NAME}", f"a/deep/{NAME}.2", f"a/deep/{NAME}", "a/model.pth", f"c/{NAME}.profile-empty"):
        _touch(tmp_path / path)
    found = find_event_runs(tmp_path)
    assert [(run.name, [path.name for path in run.paths]) for run in found.runs] == [
        ("a/deep", [NAME, f"{NAME}.2"]),
        ("b", [NAME]),
    ]
    assert found.complete
    _touch(tmp_path / NAME)
    assert [run.name for run in find_event_runs(tmp_path).runs] == [".", "a/deep", "b"]


def test_a_file_is_a_run_whatever_its_name(tmp_path: Path) -> None:
    (run,) = find_event_runs(_touch(tmp_path / "log.bin")).runs
    assert (run.name, run.paths) == ("log.bin", (tmp_path / "log.bin",))


def test_nothing_is_an_answer(tmp_path: Path) -> None:
    assert find_event_runs(tmp_path).runs == () and find_event_runs(tmp_path / "no").runs == ()


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    _touch(tmp_path / "run" / NAME)
    (tmp_path / "run" / "loop").symlink_to(tmp_path)
    assert [run.name for run in find_event_runs(tmp_path).runs] == ["run"]


def test_the_search_ends_at_a_limit_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        _touch(tmp_path / str(number) / NAME)
    monkeypatch.setattr(find, "MOST_ENTRIES", 10)
    assert not find_event_runs(tmp_path).complete


@pytest.mark.parametrize(
    ("checkpoint", "log"),
    [
        # Lightning, transformers, torch's default, and one folder for all.
        ("lightning_logs/version_0/checkpoints/epoch=1.ckpt", f"lightning_logs/version_0/{NAME}"),
        ("out/checkpoint-500/model.safetensors", f"out/runs/Nov23_host/{NAME}"),
        ("model.pth", f"runs/Nov23_host_comment/{NAME}"),
        ("work/model.pth", f"work/{NAME}"),
        ("out/checkpoint-500", f"out/runs/a/{NAME}"),
    ],
)
def test_beside_a_checkpoint(tmp_path: Path, checkpoint: str, log: str) -> None:
    if Path(checkpoint).suffix:
        _touch(tmp_path / checkpoint)
    else:
        (tmp_path / checkpoint).mkdir(parents=True)
    _touch(tmp_path / log)
    runs = event_runs_beside(tmp_path / checkpoint).runs
    assert [path for run in runs for path in run.paths] == [tmp_path / log]


def test_beside_a_checkpoint_strange_folders_are_left_alone(tmp_path: Path) -> None:
    _touch(tmp_path / "a" / "b" / "model.pth")
    _touch(tmp_path / "a" / "other" / NAME)
    assert event_runs_beside(tmp_path / "a" / "b" / "model.pth").runs == ()
