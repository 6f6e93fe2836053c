"""explain-error: from a file, from standard input, as an option, and beside a checkpoint."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from inspector.cli.main import run

ROOT = Path(__file__).resolve().parents[2]
MESSAGE = (
    'Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "fc.weight", '
    '"fc.bias". \n\tUnexpected key(s) in state_dict: "module.fc.weight", "module.fc.bias". '
)


def test_a_text_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "error.txt").write_text(MESSAGE)
    assert run(["explain-error", str(tmp_path / "error.txt")]) == 0
    out = capsys.readouterr().out
    assert 'drop the segment "module"' in out
    assert "key = key.removeprefix('module.')" in out


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MESSAGE.encode() + b"\xff")))
    assert run(["explain-error", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["errors"][0]["kind"] == "keys-renamed"


def test_text_and_the_file_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"module.fc.weight": torch.ones(2, 2), "module.fc.bias": torch.ones(2)}, tmp_path / "a.pth")
    assert run(["explain-error", str(tmp_path / "a.pth"), "--text", MESSAGE]) == 0
    assert "agree with this file" in capsys.readouterr().out
    (tmp_path / "error.txt").write_text(MESSAGE)
    assert run(["explain-error", str(tmp_path / "error.txt"), str(tmp_path / "a.pth")]) == 0


def test_half_a_message_names_both_causes(capsys: pytest.CaptureFixture[str]) -> None:
    half = 'Unexpected key(s) in state_dict: "module.conv1.weight", "module.bn1.weight", "module.bn1.bias"'
    assert run(["explain-error", "--text", half]) == 0
    shown = capsys.readouterr().out
    assert "(keys-renamed or not-in-model)" in shown
    assert "Either  The file was saved from a DataParallel" in shown
    assert "Or  The model is wrapped as well" in shown
    assert run(["explain-error", "--text", half, "--json"]) == 0
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert [cause["kind"] for cause in error["causes"]] == ["keys-renamed", "not-in-model"]


def test_a_file_that_cannot_be_opened_is_a_part_of_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.pth").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    assert run(["explain-error", str(tmp_path / "a.pth"), "--text", "invalid load key, 'v'."]) == 0
    assert "git-lfs" in capsys.readouterr().out.partition("The file\n")[2]


def test_nothing_known_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain-error", "--text", "hello"]) == 1


@pytest.mark.parametrize("arguments", [[], ["a.txt", "b.pth", "--text", "x"], ["not-there.txt"]])
def test_unusable_input_exits_with_2(arguments: list[str]) -> None:
    assert run(["explain-error", *arguments]) == 2


def test_a_checkpoint_in_the_place_of_the_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"a": torch.ones(1)}, tmp_path / "a.pth")
    assert run(["explain-error", str(tmp_path / "a.pth")]) == 2
    assert "is no text" in capsys.readouterr().err


def test_it_needs_no_torch() -> None:
    code = (
        f"import sys; from inspector.cli.main import run; "
        f"run(['explain-error', '--text', {MESSAGE!r}]); print('torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip().endswith("False")
