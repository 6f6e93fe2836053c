"""A tree of mixed files, row by row: numbers by hand, hostile ones among them, nothing followed out of the tree."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import pickle
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from inspector.checkpoint.producer import producer_of
from inspector.cli.main import run
from inspector.errors import ReadError
from inspector.findings import Severity
from inspector.limits import DEFAULT_LIMITS
from inspector.readers import open_checkpoint
from inspector.render.survey import row_line
from inspector.survey import row as rows
from inspector.survey.report import RowKind, SurveyRow
from inspector.survey.survey import survey_folder

ROOT = Path(__file__).resolve().parents[2]


class Payload:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return (os.system, (f"touch {self.marker}",))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two checkpoints, a web page under a checkpoint's name, a hostile pickle, a picture, notes, links outside."""
    root = tmp_path / "tree"
    (root / "runs" / "b").mkdir(parents=True)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))  # 112 + 8 parameters, 9 numbers in buffers
    torch.save({"state_dict": net.state_dict(), "pytorch-lightning_version": "2.1.0"}, root / "runs" / "a.ckpt")
    save_file({"w": torch.zeros(5)}, root / "runs" / "b" / "c.safetensors")
    (root / "page.pth").write_text("<!DOCTYPE html><html></html>")
    (root / "notes.md").write_text("# notes")
    (root / "evil.pkl").write_bytes(pickle.dumps({"x": Payload(tmp_path / "marker")}))
    (tmp_path / "outside.pt").write_bytes((root / "runs" / "a.ckpt").read_bytes())
    (root / "link.pt").symlink_to(tmp_path / "outside.pt")
    (root / "loop").symlink_to(root, target_is_directory=True)
    return root


def _by_path(found: tuple[SurveyRow, ...]) -> dict[str, SurveyRow]:
    return {row.path: row for row in found}


def test_every_file_has_a_row_with_its_numbers(tree: Path) -> None:
    survey = survey_folder(tree, digest=True)
    got = _by_path(survey.rows)
    assert list(got) == ["evil.pkl", "link.pt", "notes.md", "page.pth", "runs/a.ckpt", "runs/b/c.safetensors"]
    lightning = got["runs/a.ckpt"]
    assert (lightning.format, lightning.producer) == ("torch-zip", "PyTorch Lightning 2.1.0")
    assert (lightning.tensors, lightning.parameters, lightning.buffers) == (7, 120, 9)
    assert lightning.nbytes == (tree / "runs/a.ckpt").stat().st_size
    assert got["runs/b/c.safetensors"].parameters == 5
    assert got["page.pth"].kind is RowKind.UNREADABLE
    assert got["page.pth"].worst is Severity.ERROR
    assert got["notes.md"].kind is RowKind.OTHER
    assert got["notes.md"].worst is None
    assert survey.worst() is Severity.ERROR
    import hashlib

    assert lightning.sha256 == hashlib.sha256((tree / "runs/a.ckpt").read_bytes()).hexdigest()


def test_a_payload_is_reported_and_not_run(tree: Path) -> None:
    evil = _by_path(survey_folder(tree).rows)["evil.pkl"]
    assert (evil.worst, evil.finding, evil.dangerous) == (Severity.ERROR, "dangerous-global", 1)
    assert not (tree.parent / "marker").exists()
    pickle.loads((tree / "evil.pkl").read_bytes())  # The control: it would have run.
    assert (tree.parent / "marker").exists()


def test_a_link_to_a_file_elsewhere_is_looked_at_and_one_within_is_counted(tree: Path) -> None:
    survey = survey_folder(tree)
    assert survey.skipped == ("1 symbolic link to what has a row of its own.",)
    assert _by_path(survey.rows)["link.pt"].parameters == 120


def test_the_snapshot_folder_of_a_download_cache_is_examined(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "abc"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    (blobs / "0a1b").write_bytes(pickle.dumps({"x": Payload(tmp_path / "marker")}))
    (snapshot / "pytorch_model.bin").symlink_to("../../blobs/0a1b")
    (row,) = survey_folder(snapshot).rows
    assert (row.path, row.worst, row.finding) == ("pytorch_model.bin", Severity.ERROR, "dangerous-global")


def test_what_a_link_or_a_pipe_hides_has_a_row_that_the_gate_sees(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    root.mkdir()
    other.mkdir()
    (other / "evil.pkl").write_bytes(pickle.dumps({"x": Payload(tmp_path / "marker")}))
    (root / "folder").symlink_to(other, target_is_directory=True)
    (root / "nothing.pt").symlink_to(tmp_path / "gone")
    (root / "self.pt").symlink_to(root / "self.pt")
    (root / "zero.pt").symlink_to("/dev/zero")
    os.mkfifo(root / "pipe.pt")
    rows = _by_path(survey_folder(root).rows)
    assert {name: row.worst for name, row in rows.items()} == {
        "folder": Severity.WARNING,
        "nothing.pt": Severity.INFO,
        "pipe.pt": Severity.WARNING,
        "self.pt": Severity.INFO,
        "zero.pt": Severity.WARNING,
    }
    assert {row.finding for row in rows.values()} == {"not-examined"}
    assert run(["scan", str(root), "--fail-on", "warning"]) == 1


def test_processes_side_by_side_give_the_same_rows(tree: Path) -> None:
    for number in range(6):
        torch.save({"w": torch.zeros(number + 1)}, tree / f"n{number}.pt")
    alone, together = survey_folder(tree), survey_folder(tree, jobs=2)
    assert together.rows == alone.rows
    assert len(alone.rows) == 12


def test_rows_come_in_order_as_they_are_ready(tree: Path) -> None:
    seen: list[str] = []
    survey = survey_folder(tree, each=lambda row: seen.append(row.path))
    assert seen == [row.path for row in survey.rows]


def test_a_reader_that_crashes_costs_one_row(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = rows.open_checkpoint

    def crashing(where: object, **options: object) -> object:
        if str(where).endswith("a.ckpt"):
            raise KeyError("oops")
        return real(where, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(rows, "open_checkpoint", crashing)
    got = _by_path(survey_folder(tree).rows)
    assert (got["runs/a.ckpt"].finding, got["runs/a.ckpt"].worst) == ("internal-error", Severity.ERROR)
    assert "KeyError" in got["runs/a.ckpt"].says
    assert got["runs/b/c.safetensors"].kind is RowKind.CHECKPOINT


def test_a_file_is_no_folder(tree: Path) -> None:
    with pytest.raises(ReadError, match=r"notes\.md is no folder"):
        survey_folder(tree / "notes.md")


def test_the_command_prints_a_line_each_and_fails_on_errors(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scan", str(tree)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        "worst",
        "format",
        "producer",
        "tensors",
        "parameters",
        "size",
        "path:",
        "worst",
        "finding",
    ]
    assert len([line for line in lines if "a.ckpt" in line]) == 1
    assert not any("notes.md" in line for line in lines)
    assert "6 rows" in lines[-2]
    assert run(["scan", str(tree), "--all"]) == 1
    assert "notes.md" in capsys.readouterr().out
    (tree / "evil.pkl").unlink()
    (tree / "page.pth").unlink()
    assert run(["scan", str(tree)]) == 0


def test_the_command_as_json(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scan", str(tree), "--json", "--fail-on", "error"]) == 1
    report = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert report["rows"][0]["path"] == "evil.pkl"
    assert report["rows"][4]["parameters"] == 120


def test_a_path_cannot_break_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"w": torch.zeros(1)}, tmp_path / "a\nb\x1b[31m.pt")
    assert run(["scan", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "a\\nb\\x1b[31m.pt" in out
    assert "\x1b" not in out


def test_a_scan_in_processes_of_its_own_needs_no_torch(tree: Path) -> None:
    code = (
        "import sys; from inspector.cli.main import run\n"
        f"if __name__ == '__main__':\n    run(['scan', {str(tree)!r}]); print('torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip().endswith("False")


def test_a_model_that_names_its_producer(tmp_path: Path) -> None:
    import onnx
    from onnx import helper

    graph = helper.make_graph([], "g", [], [], [onnx.numpy_helper.from_array(torch.zeros(2).numpy(), "w")])
    onnx.save(helper.make_model(graph, producer_name="pytorch", producer_version="2.9"), tmp_path / "a.onnx")
    assert producer_of(open_checkpoint(tmp_path / "a.onnx")) == "pytorch 2.9"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"w": torch.zeros(2)}, "torch.save"),
        ({"model": {"w": torch.zeros(2)}, "ds_version": "0.14.0"}, "DeepSpeed 0.14.0"),
        ({"meta": {"mmcv_version": "1.7.0"}, "state_dict": {"w": torch.zeros(2)}}, "MMCV 1.7.0"),
        ({"arch": "x", "metric": 0.5, "version": 2, "state_dict": {"w": torch.zeros(2)}}, "timm"),
        # A version that is no version names nobody.
        ({"ds_version": "rm -rf", "w": torch.zeros(2)}, "torch.save"),
    ],
)
def test_producers(tmp_path: Path, value: object, expected: str) -> None:
    torch.save(value, tmp_path / "a.pt")
    assert producer_of(open_checkpoint(tmp_path / "a.pt", limits=DEFAULT_LIMITS)) == expected


def test_a_pickle_beside_the_shards_of_a_model_has_a_row_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "tree" / "model"
    folder.mkdir(parents=True)
    save_file({"w": torch.zeros(5)}, folder / "model-00001-of-00001.safetensors")
    index = {"weight_map": {"w": "model-00001-of-00001.safetensors", "v": "model-00002-of-00002.bin"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "training_args.bin").write_bytes(pickle.dumps({"x": Payload(tmp_path / "marker")}))
    (folder / "model-00002-of-00002.bin").write_bytes(b"\x80\x02cos\nsystem\n(X\x01\0\0\0xtR\xff")
    found = _by_path(survey_folder(tmp_path / "tree").rows)
    assert found["model"].format == "sharded"
    assert found["model/training_args.bin"].dangerous == 1
    assert found["model/training_args.bin"].worst is Severity.ERROR
    assert "model/model-00001-of-00001.safetensors" not in found
    assert found["model"].dangerous == 1
    assert not (tmp_path / "marker").exists()


def test_a_tree_made_to_hurt_gives_rows_and_ends(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    deep = root.joinpath(*(f"n{n}" for n in range(80)))
    deep.mkdir(parents=True)
    torch.save({}, root / "a.pt")
    (deep / "b.pt").write_bytes((root / "a.pt").read_bytes())
    for name in ("pipe.pt", "model.safetensors.index.json", "config.json", ".metadata"):
        os.mkfifo(root / name)
    (root / "zero.pt").symlink_to("/dev/zero")
    (root / os.fsdecode(b"esc\x1b[31m\xff\n.pt")).write_bytes((root / "a.pt").read_bytes())
    survey = survey_folder(root)
    read = [row for row in survey.rows if row.finding != "not-examined"]
    assert [row.format for row in read] == ["torch-zip", "torch-zip"]
    assert len(survey.rows) == 2 + 5
    assert "levels deep" in survey.skipped[0]
    lines = [row_line(row) for row in read]
    assert all(line.isprintable() for line in lines) and "\\x1b[31m\\377\\n" in lines[1]


@pytest.mark.parametrize(
    "pack",
    [
        zlib.compress,
        gzip.compress,
        bz2.compress,
        lzma.compress,
        lambda raw: lzma.compress(raw, format=lzma.FORMAT_ALONE),
    ],
    ids=["zlib", "gzip", "bz2", "xz", "lzma"],
)
def test_a_compressed_joblib_file_is_as_its_content(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """zlib and lzma streams were an error by their name alone, whatever was in them."""
    model = b"\x80\x04csklearn.linear_model\nRidge\n)\x81}X\x05\x00\x00\x00alphaK\x01sb."
    (tmp_path / "plain.joblib").write_bytes(model)
    (tmp_path / "model.joblib").write_bytes(pack(model))
    (tmp_path / "evil.joblib").write_bytes(pack(b"\x80\x04cos\nsystem\nX\x02\x00\x00\x00id\x85R."))
    (tmp_path / "text.joblib").write_bytes(pack(b"hello, hello, hello, hello"))
    found = {row.path: row for row in survey_folder(tmp_path).rows}
    assert len(found) == 4
    assert found["model.joblib"].worst is found["plain.joblib"].worst is Severity.WARNING
    assert found["model.joblib"].format == found["plain.joblib"].format == "pickle"
    assert found["evil.joblib"].worst is Severity.ERROR and found["evil.joblib"].dangerous == 1
    assert found["text.joblib"].worst is Severity.ERROR and "no checkpoint" in found["text.joblib"].says


def test_a_scan_counts_the_rows_that_it_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # "19 rows" stood under 18 of them: the last was no checkpoint, and has a line with --all alone.
    for name in "abc":
        torch.save({"x.weight": torch.zeros(2)}, tmp_path / f"{name}.pth")
    (tmp_path / "notes.txt").write_text("hello")
    assert run(["scan", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    shown = sum(f"{name}." in line for line in out.splitlines() for name in ("a", "b", "c", "notes"))
    assert shown == 3 and "3 of 4 rows in" in out and "1 other file without a line (--all)" in out
    assert run(["scan", str(tmp_path), "--all"]) == 0
    out = capsys.readouterr().out
    assert "notes.txt" in out and "4 rows in" in out and "of 4 rows" not in out and "without a line" not in out
