"""The hooks and the action of the repository, as the programs that run them do: by their files alone."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from inspector.cli.main import run
from inspector.survey.row import CHECKPOINT_SUFFIXES
from tests.lint.test_check import POINTER, tensor_file
from tests.render.sarif_rules import assert_sarif

ROOT = Path(__file__).resolve().parents[2]
NAN = float("nan")
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
BASH = shutil.which("bash")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    tensor_file(tmp_path / "healthy.safetensors", [0.1, 0.2, 0.3, 0.4])
    tensor_file(tmp_path / "-x.safetensors", [0.1, 0.2, 0.3, 0.4])
    (tmp_path / "pointer.pth").write_bytes(POINTER)
    return tmp_path


def _run_hook(hook: dict[str, Any], *names: str) -> int:
    """As pre-commit makes its line: entry, args, names of files."""
    program, *words = shlex.split(hook["entry"])
    assert program == "inspector"
    return run([*words, *hook["args"], *names])


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_passes_healthy_files_and_pointers_and_stops_what_would_run(
    hook: dict[str, Any], repository: Path
) -> None:
    assert _run_hook(hook, "healthy.safetensors", "pointer.pth", "-x.safetensors") == 0
    (repository / "evil.pkl").write_bytes(b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.")
    assert _run_hook(hook, "healthy.safetensors", "evil.pkl") == 1


def test_only_the_second_hook_reads_numbers(repository: Path) -> None:
    tensor_file(repository / "sick.safetensors", [0.1, NAN, 0.3, 0.4])
    assert [_run_hook(hook, "sick.safetensors") for hook in HOOKS] == [0, 1]
    assert [hook["id"] for hook in HOOKS] == ["model-inspector", "model-inspector-weights"]


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_is_asked_about_checkpoints_alone(hook: dict[str, Any]) -> None:
    for suffix in CHECKPOINT_SUFFIXES:
        if suffix not in (".p", ".dill", ".model", ".weights", ".llamafile"):
            assert re.search(hook["files"], f"a/b{suffix}"), suffix
    for name in ("model.py", "README.md", "a.pth.txt", "pth", "config.json"):
        assert not re.search(hook["files"], name)
    assert hook["language"] == "python" and hook["require_serial"] and hook["args"][-1] == "--"


def _steps() -> dict[str, dict[str, Any]]:
    return {step["id"]: step for step in ACTION["runs"]["steps"]}


def test_nothing_of_an_input_becomes_part_of_a_script() -> None:
    assert ACTION["runs"]["using"] == "composite"
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"] and step["shell"] == "bash"
        for value in step["env"].values():
            assert re.fullmatch(r"\$\{\{ (inputs\.[a-z-]+|github\.action_path) \}\}", value)
            name = value[4:-3]
            assert name == "github.action_path" or name.removeprefix("inputs.") in ACTION["inputs"]
    for output in ACTION["outputs"].values():
        found = re.fullmatch(r"\$\{\{ steps\.(\w+)\.outputs\.([\w-]+) \}\}", output["value"])
        assert found and f"{found[2]}=" in _steps()[found[1]]["run"]


def _check(folder: Path, **inputs: str) -> tuple[int, str, dict[str, str]]:
    """The step that checks, with the runner's variables: exit code, output, and what it tells later steps."""
    step = _steps()["check"]
    runner = folder.parent / "runner"
    (runner / "model-inspector" / "bin").mkdir(parents=True, exist_ok=True)
    program = runner / "model-inspector" / "bin" / "inspector"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m inspector "$@"\n')
    program.chmod(0o755)
    for name in ("output", "summary"):
        (runner / name).write_text("")
    given = {name: str(held.get("default", "")) for name, held in ACTION["inputs"].items()} | inputs
    variables = {name: given[value[len("${{ inputs.") : -3]] for name, value in step["env"].items()}
    made = subprocess.run(
        [BASH or "bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={
            **os.environ, **variables, "PYTHONPATH": str(ROOT), "RUNNER_TEMP": str(runner),
            "GITHUB_OUTPUT": str(runner / "output"), "GITHUB_STEP_SUMMARY": str(runner / "summary"),
        },
        capture_output=True,
        text=True,
    )  # fmt: skip
    told = dict(line.split("=", 1) for line in (runner / "output").read_text().splitlines())
    return made.returncode, made.stdout + made.stderr, told


@pytest.mark.skipif(BASH is None, reason="no bash")
def test_the_action_annotates_summarises_and_writes_sarif(repository: Path) -> None:
    here = repository / "repo"
    here.mkdir()
    tensor_file(here / "sick one.safetensors", [0.1, NAN, 0.3, 0.4])
    tensor_file(here / "healthy.safetensors", [0.1, 0.2, 0.3, 0.4])
    code, out, told = _check(here)
    assert (code, told) == (1, {"exit-code": "1", "sarif-file": "model-inspector.sarif"})
    assert out.startswith("::error file=sick one.safetensors,title=non-finite::")
    log = json.loads((here / "model-inspector.sarif").read_text())
    assert_sarif(log)
    assert len(log["runs"][0]["results"]) == 1
    assert "sick one" in (repository / "runner" / "summary").read_text()
    code, _, told = _check(here, path="healthy.safetensors\n")
    assert (code, told["exit-code"]) == (0, "0")
    code, _, told = _check(here, path="healthy.safetensors\nsick one.safetensors")
    assert told["exit-code"] == "1"
    code, _, told = _check(here, args="--headers\n--jobs=1")
    assert (code, told["exit-code"]) == (0, "0")


@pytest.mark.skipif(BASH is None, reason="no bash")
def test_the_action_runs_nothing_of_its_inputs(repository: Path) -> None:
    here = repository / "repo"
    here.mkdir()
    tensor_file(here / "$(touch owned).safetensors", [0.1, 0.2, 0.3, 0.4])
    tensor_file(here / "-x.safetensors", [0.1, 0.2, 0.3, 0.4])
    code, out, told = _check(here, path="$(touch owned).safetensors\n-x.safetensors")
    assert (code, told["exit-code"]) == (0, "0"), out
    code, out, told = _check(here, path="none; touch owned", args="")
    assert (code, told["exit-code"]) == (2, "2")
    code, _, _ = _check(here, **{"fail-on": "`touch owned`"})
    assert code == 2 and not (here / "owned").exists()
