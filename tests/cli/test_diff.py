"""diff on the command line: exit codes, what is printed, folders, shards and state dicts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.cli.main import run
from tests.compare.files import write

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    base = {"a.weight": rng.standard_normal((4, 5)).astype(np.float32), "b.weight": rng.standard_normal((1, 3))}
    write(tmp_path / "first.safetensors", base)
    write(tmp_path / "again.safetensors", dict(reversed(base.items())), {"epoch": "3"})
    write(tmp_path / "moved.safetensors", {**base, "a.weight": base["a.weight"] * np.float32(1.001)})
    write(tmp_path / "more.safetensors", {**base, "c.weight": np.ones(2)})
    (tmp_path / "text.txt").write_text("nothing")
    return tmp_path


def diff(files: Path, *words: str) -> int:
    return run(["diff", *(str(files / w) if w.endswith((".safetensors", ".txt")) else w for w in words)])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("first.safetensors", "first.safetensors"), 0),
        (("first.safetensors", "again.safetensors"), 0),
        (("first.safetensors", "again.safetensors", "--all"), 1),
        (("first.safetensors", "moved.safetensors"), 1),
        (("first.safetensors", "moved.safetensors", "--tolerance", "0.01"), 0),
        (("first.safetensors", "moved.safetensors", "--tolerance", "0"), 1),
        (("first.safetensors", "more.safetensors", "--tolerance", "1"), 1),
        (("first.safetensors", "again.safetensors", "more.safetensors"), 1),
        (("first.safetensors", "again.safetensors", "first.safetensors"), 0),
        (("first.safetensors", "text.txt"), 2),
        (("first.safetensors", "again.safetensors", "text.txt"), 2),
        (("first.safetensors", "moved.safetensors", "text.txt"), 2),
        (("first.safetensors", "moved.safetensors", "nowhere.safetensors", "-q"), 2),
        (("first.safetensors", "nowhere.safetensors"), 2),
        (("first.safetensors",), 2),
        (("first.safetensors", "again.safetensors", "--exit-code", "-q"), 0),
        (("first.safetensors", "again.safetensors", "-q", "--stat"), 2),
        (("first.safetensors", "again.safetensors", "--state", "ema"), 2),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else str(v),
)
def test_exit_codes(files: Path, words: tuple[str, ...], code: int) -> None:
    assert diff(files, *words) == code


def test_quiet_prints_nothing(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(files, "first.safetensors", "moved.safetensors", "-q") == 1
    assert capsys.readouterr().out == ""


def test_names_only(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(files, "first.safetensors", "moved.safetensors", "--names-only") == 1
    assert capsys.readouterr().out == "a.weight\n"
    assert diff(files, "first.safetensors", "moved.safetensors", "--names-only", "--tolerance", "0.01") == 0
    assert capsys.readouterr().out == ""


def test_json_is_the_report(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(files, "first.safetensors", "moved.safetensors", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    by_name = {(t["a"] or t["b"])["name"]: t for t in found["tensors"]}
    assert (by_name["a.weight"]["relation"], by_name["b.weight"]["relation"]) == ("changed", "same")
    assert by_name["a.weight"]["numbers"]["n"] == 20
    assert found["verdicts"][0]["id"] == "only-some"
    assert diff(files, "first.safetensors", "moved.safetensors", "text.txt", "--json") == 2
    several = json.loads(capsys.readouterr().out)["diffs"]
    assert [(each["diff"] is None, each["trouble"]) for each in several] == [(False, False), (True, True)]


def test_text_and_stat(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    diff(files, "first.safetensors", "moved.safetensors")
    out = capsys.readouterr().out
    assert (
        "Only 1 layer changed: a (20 of its 20 elements; it is 87.0 % of all elements); the other tensor is"
        in out.replace("%", " %").replace("  %", " %")
    )
    assert "changed   a.weight  4x5" in out
    diff(files, "first.safetensors", "moved.safetensors", "--stat")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["module", "a", "in"]


def test_several_files_are_a_row_each(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    diff(files, "first.safetensors", "again.safetensors", "more.safetensors", "text.txt")
    captured = capsys.readouterr()
    assert "The same weights: 2 tensors" in captured.out
    assert "1 only in the second file" in captured.out
    assert "text.txt" in captured.err


def test_a_folder_of_shards_is_one_side(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    base = {"a.weight": rng.standard_normal((4, 5)).astype(np.float32), "b.weight": rng.standard_normal((1, 3))}
    shards = files / "shards"
    shards.mkdir()
    names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    for name, key in zip(names, base, strict=True):
        write(shards / name, {key: base[key]})
    index = {"metadata": {}, "weight_map": dict(zip(base, names, strict=True))}
    (shards / "model.safetensors.index.json").write_text(json.dumps(index))
    assert run(["diff", str(files / "first.safetensors"), str(shards)]) == 0
    assert run(["diff", str(shards), str(files / "moved.safetensors")]) == 1
    capsys.readouterr()


def test_two_folders_are_compared_by_name(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, value, only in (("x", 1.0, "left"), ("y", 2.0, "right")):
        (files / folder / "deep").mkdir(parents=True)
        write(files / folder / "same.safetensors", {"w": np.ones(3)})
        write(files / folder / "deep" / "other.safetensors", {"w": np.full(3, value)})
        write(files / folder / f"{only}.safetensors", {"w": np.ones(3)})
        (files / folder / "README.md").write_text("words")
    assert run(["diff", str(files / "x"), str(files / "y")]) == 1
    out = capsys.readouterr().out
    for words in ("deep/other.safetensors", "left.safetensors", "right.safetensors", "same.safetensors"):
        assert words in out
    assert "README" not in out
    assert run(["diff", str(files / "x"), str(files / "first.safetensors")]) == 2
    (files / "empty").mkdir()
    assert run(["diff", str(files / "empty"), str(files / "empty")]) == 2


def test_state_dicts_of_either_side(tmp_path: Path) -> None:
    weights = {"l.weight": torch.arange(6.0).reshape(2, 3), "l.bias": torch.ones(2)}
    ema = {name: value + 1 for name, value in weights.items()}
    torch.save({"model": weights, "ema": ema}, tmp_path / "run.pth")
    torch.save(ema, tmp_path / "ema.pth")
    both = [str(tmp_path / "run.pth"), str(tmp_path / "ema.pth")]
    assert run(["diff", *both]) == 1
    assert run(["diff", *both, "--state-a", "ema"]) == 0
    assert run(["diff", both[0], both[0], "--state-b", "ema"]) == 1
    assert run(["diff", both[0], both[0], "--state", "ema"]) == 0
    assert run(["diff", *both, "--state", "ema", "--state-a", "ema"]) == 2


def test_only_an_unread_tensor_is_trouble(tmp_path: Path) -> None:
    a = write(tmp_path / "a.safetensors", {"w": np.arange(8.0), "v": np.arange(800.0)})
    b = tmp_path / "b.safetensors"
    b.write_bytes(a.read_bytes()[:-100])
    assert run(["diff", str(a), str(b)]) == 2


def test_no_torch_is_imported(files: Path) -> None:
    words = [str(files / name) for name in ("first.safetensors", "moved.safetensors")]
    code = f"import sys\nfrom inspector.cli.main import run\nprint(run(['diff', *{words!r}]), 'torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.splitlines()[-1] == "1 False"


def test_names_obey_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "w\x1b[31m\n::error::x"
    a = write(tmp_path / "a.safetensors", {name: np.ones(2)})
    b = write(tmp_path / "b.safetensors", {name: np.zeros(2)})
    for option in ("--names-only", "--stat", "--json", "--all"):
        run(["diff", str(a), str(b), option])
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert "\n::error" not in out


def test_names_only_of_folders_says_which_file(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, value, only in (("x", 1.0, "left"), ("y", 2.0, "right")):
        (files / folder).mkdir()
        write(files / folder / "other.safetensors", {"w": np.full(3, value), "v": np.ones(2)})
        write(files / folder / f"{only}.safetensors", {"w": np.ones(3)})
    assert run(["diff", str(files / "x"), str(files / "y"), "--names-only"]) == 1
    assert capsys.readouterr().out.splitlines() == ["left.safetensors", "other.safetensors: w", "right.safetensors"]


def test_all_compares_the_optimizers_tensors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = {"l.weight": torch.arange(6.0).reshape(2, 3)}
    moments = {"step": torch.tensor(3.0), "exp_avg": torch.ones(2, 3), "exp_avg_sq": torch.ones(2, 3)}
    for name, changed in (("a", {}), ("same", {}), ("b", {"exp_avg": torch.zeros(2, 3)})):
        groups = [{"lr": 0.1, "params": [0]}]
        optimizer = {"state": {0: {**moments, **changed}}, "param_groups": groups}
        torch.save({"state_dict": weights, "optimizer": optimizer}, tmp_path / f"{name}.pth")
    sides = [str(tmp_path / "a.pth"), str(tmp_path / "b.pth")]
    assert run(["diff", *sides]) == 0
    assert "Not compared: 3 tensors of the first file in other state dicts" in capsys.readouterr().out
    assert run(["diff", *sides, "--all"]) == 1
    out = capsys.readouterr().out
    assert "1 of 2 tensors hold other bytes" in out and "Not compared" not in out
    assert run(["diff", sides[0], str(tmp_path / "same.pth"), "--all"]) == 0
