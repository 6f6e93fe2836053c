"""`inspector check`: exit codes, formats, files, settings and baselines, and names that no format may obey."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from inspector.cli.main import run
from tests.lint.test_check import POINTER, tensor_file
from tests.render.checked_reports import HOSTILE
from tests.render.sarif_rules import assert_sarif

ROOT = Path(__file__).resolve().parents[2]
NAN = float("nan")
Out = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a healthy file, one with a NaN, one with a large number, and a pointer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    (tmp_path / "models").mkdir()
    tensor_file(tmp_path / "models" / "healthy.safetensors", [0.1, 0.2, 0.3, 0.4])
    tensor_file(tmp_path / "models" / "sick.safetensors", [0.1, NAN, 0.3, 0.4])
    tensor_file(tmp_path / "models" / "large.safetensors", [0.1, 2e3, 0.3, 0.4])
    (tmp_path / "models" / "pointer.pth").write_bytes(POINTER)
    return tmp_path


def test_the_exit_code_is_that_of_the_worst_that_counts(folder: Path, capsys: Out) -> None:
    assert run(["check", "models"]) == 1
    assert run(["check", "models/healthy.safetensors", "models/pointer.pth"]) == 0
    assert run(["check", "models/large.safetensors"]) == 0
    assert run(["check", "models/large.safetensors", "--fail-on", "warning"]) == 1
    assert run(["check", "models", "--headers", "--fail-on", "warning"]) == 0
    assert run(["check", "models/pointer.pth", "--fail-on", "notice"]) == 1
    capsys.readouterr()
    for arguments in (["none.pth"], ["models", "none.pth"], [], ["models", "--select", "nonfinite"]):
        assert run(["check", *arguments]) == 2
        told = capsys.readouterr()
        assert told.out == "" and told.err.strip()


def test_the_text_has_a_line_for_each_finding_and_one_for_the_end(folder: Path, capsys: Out) -> None:
    assert run(["check", "models", "--fail-on", "warning"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith(" ")][:3] == [
        "models/large.safetensors: warning: large-weight: fc.weight reaches 2e+03 in magnitude, with a root mean "
        "square of 1e+03.",
        "models/pointer.pth: notice: pointer-file: pointer.pth is a Git LFS pointer (133 bytes), not the weights: "
        '"git lfs pull" fetches those, 46,830,571 bytes with the sha256 abababababab….',
        "models/sick.safetensors: error: non-finite: fc.weight holds 1 NaN (25.0 %) among 4, the first at [0, 1].",
    ]
    assert lines[-1].startswith("3 checkpoints, 1 unread in ")
    assert "1 error, 1 warning, 1 note. Numbers were read. Fails: something is at or above warning." in lines[-1]
    assert run(["check", "models/healthy.safetensors", "--all"]) == 0
    assert "models/healthy.safetensors: clean: safetensors\n" in capsys.readouterr().out


def test_each_format_is_what_it_is_called(folder: Path, capsys: Out) -> None:
    def printed(*more: str) -> str:
        assert run(["check", "models", *more]) == 1
        return capsys.readouterr().out

    for options in (["--json"], ["--format", "json"]):
        report = json.loads(printed(*options), parse_constant=pytest.fail)
        assert (report["version"], report["worst"], report["failed"]) == (1, "error", True)
        assert report["files"][0]["path"] == "models/healthy.safetensors"
        assert report["files"][3]["findings"][0]["id"] == "non-finite"
    assert_sarif(json.loads(printed("--format", "sarif")))
    assert ElementTree.fromstring(printed("--format", "junit")).get("failures") == "1"
    github = printed("--format", "github").splitlines()
    assert github[0].startswith(
        "::error file=models/sick.safetensors,title=non-finite::fc.weight holds 1 NaN (25.0 %25)"
    )
    assert run(["check", "models", "--json", "--format", "sarif"]) == 2


def test_files_are_written_by_their_endings_beside_what_is_printed(folder: Path, capsys: Out) -> None:
    names = ["a.sarif", "b.json", "c.xml", "d.md", "e.txt", "f.out"]
    outputs = [word for name in names for word in ("--output", name)]
    assert run(["check", "models", "--format", "github", *outputs]) == 1
    # f.out is as --format, which then is not printed besides.
    assert not capsys.readouterr().out.startswith("::")
    assert (folder / "f.out").read_text().startswith("::error")
    assert_sarif(json.loads((folder / "a.sarif").read_text()))
    assert json.loads((folder / "b.json").read_text())["failed"] is True
    assert ElementTree.parse(folder / "c.xml").getroot().tag == "testsuites"
    assert (folder / "d.md").read_text().startswith("### Model Inspector\n")
    assert "models/sick.safetensors: error: non-finite" in (folder / "e.txt").read_text()
    assert not list(folder.glob(".writing-*"))


@pytest.mark.parametrize("name", ["models/healthy.safetensors", "new.pth", "models", "none/a.json", "inspector.GGUF"])
def test_a_report_takes_no_checkpoint_s_place_or_name(folder: Path, capsys: Out, name: str) -> None:
    before = (folder / "models" / "healthy.safetensors").read_bytes()
    for option in ("--output", "--write-baseline"):
        assert run(["check", "models", option, name]) == 2
        assert capsys.readouterr().out == ""
    assert (folder / "models" / "healthy.safetensors").read_bytes() == before and not (folder / "new.pth").exists()


def test_the_summary_of_the_step_is_added_to_what_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    summary = folder / "summary"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert run(["check", "models"]) == 1
    assert summary.read_text() == "before\n"
    assert run(["check", "models", "--format", "github"]) == 1
    assert summary.read_text().startswith("before\n### Model Inspector\n") and "non\\-finite" in summary.read_text()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "none"))
    assert run(["check", "models", "--format", "github"]) == 2
    assert "GITHUB_STEP_SUMMARY names no file" in capsys.readouterr().err


def test_a_baseline_is_written_and_then_holds(folder: Path, capsys: Out) -> None:
    assert run(["check", "models", "--write-baseline", "known.json"]) == 0
    assert "3 known from now on" in capsys.readouterr().out
    assert run(["check", "models", "--baseline", "known.json"]) == 0
    assert "3 known from known.json" in capsys.readouterr().out
    tensor_file(folder / "models" / "sick.safetensors", [0.1, 0.2, 0.3, 0.4])
    tensor_file(folder / "models" / "new.safetensors", [NAN, 0.2, 0.3, 0.4])
    assert run(["check", "models", "--baseline", "known.json"]) == 1
    out = capsys.readouterr().out
    assert "Gone from the baseline's findings: models/sick.safetensors: non-finite" in out
    assert "models/new.safetensors: error: non-finite" in out and "models/large" not in out


def test_settings_are_found_named_and_overruled(folder: Path, capsys: Out) -> None:
    (folder / "inspector.toml").write_text(
        '[check]\nfail-on = "warning"\nignore = ["non-finite"]\n[thresholds]\nlarge = 1500.0\n'
    )
    assert run(["check", "models"]) == 1
    out = capsys.readouterr().out
    assert "large-weight" in out and "non-finite" not in out
    assert f"1 ignored or not selected (settings: {(folder / 'inspector.toml').as_posix()})" in out
    assert run(["check", "models", "--ignore", "large-weight,non-finite"]) == 0
    assert run(["check", "models", "--ignore", "large-weight", "--ignore", "non-finite"]) == 0
    assert run(["check", "models", "--fail-on", "error"]) == 0
    assert run(["check", "models", "--no-config"]) == 1
    assert "non-finite" in capsys.readouterr().out.split("Passes")[-1]
    (folder / "other.toml").write_text("[thresholds]\nlarge = 5000.0\n")
    assert run(["check", "models/large.safetensors", "--config", "other.toml", "--fail-on", "notice"]) == 0
    (folder / "inspector.toml").write_text("[thresholds]\nlarg = 1\n")
    capsys.readouterr()
    assert run(["check", "models"]) == 2
    assert "Did you mean large?" in capsys.readouterr().err
    assert run(["check", "models", "--config", "other.toml", "--no-config"]) == 2


def test_a_scan_takes_no_settings(folder: Path, capsys: Out) -> None:
    (folder / "inspector.toml").write_text('[check]\nignore = ["*"]\n')
    (folder / "models" / "page.pth").write_text("<!DOCTYPE html><html></html>")
    assert run(["check", "models"]) == 0
    assert run(["scan", "models"]) == 1
    assert run(["scan", "models", "--fail-on", "warning"]) == 1
    assert "no-checkpoint" in capsys.readouterr().out


def _json(out: str) -> None:
    json.loads(out, parse_constant=pytest.fail)


FORMATS: dict[str, Callable[[str], object]] = {
    "text": lambda out: None,
    "json": _json,
    "sarif": lambda out: assert_sarif(json.loads(out)),
    "junit": lambda out: ElementTree.fromstring(out.encode()),
    "github": lambda out: None,
}


@pytest.mark.skipif(sys.platform == "win32", reason="names that Windows has not")
@pytest.mark.parametrize(("form", "encoding"), [*((form, "utf-8") for form in FORMATS), ("text", "ascii")])
def test_files_with_names_that_mean_something(tmp_path: Path, form: str, encoding: str) -> None:
    here = tmp_path / "here"
    here.mkdir()
    names = [name.replace("/", "_").replace("\x00", "") for name in HOSTILE]
    for name in names:
        tensor_file(here / f"{name}.safetensors", [0.1, NAN, 0.3, 0.4])
    made = subprocess.run(
        [sys.executable, "-m", "inspector", "check", ".", "--format", form, "--output", "report.md"],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding, "GITHUB_STEP_SUMMARY": ""},
        capture_output=True,
    )
    assert made.returncode == 1 and made.stderr == b""
    out = made.stdout.decode(encoding if form == "text" else "utf-8")
    assert not [char for char in out if not char.isprintable() and char != "\n"]
    FORMATS[form](out)
    if form in ("text", "github"):
        lines = out.splitlines()
        assert sum("non-finite" in line for line in lines) == (len(names) if form == "text" else 10)
        ours = [line for line in lines if line.lstrip().startswith("::")]
        assert all(line.startswith("::error file=") for line in ours) and "##[" not in out
        assert len(ours) == (10 if form == "github" else 0)
    (here / "report.md").read_bytes().decode("utf-8")


def test_it_needs_no_torch(folder: Path) -> None:
    blocked = ("torch", "torchvision", "safetensors", "streamlit", "pandas", "PIL", "cv2", "jsonschema")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({blocked})); "
        "from inspector.cli.main import run; sys.exit(run(sys.argv[1:]))"
    )
    made = subprocess.run(
        [sys.executable, "-c", code, "check", "models", "--format", "sarif"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 1, made.stderr
    assert_sarif(json.loads(made.stdout))
