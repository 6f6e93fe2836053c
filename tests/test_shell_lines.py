"""Commands that are written out, run by a real shell: each name arrives as it is and nothing in it runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from inspector.cam.exporting.request import Request, command_line
from inspector.cam.inputs.preprocess import stated_preprocessing
from inspector.cam.report import Options
from inspector.keys.code import python_code
from inspector.keys.report import Ambiguity, KeyReport, RepairPlan
from inspector.render.repair_text import keys_text
from inspector.shell_lines import join_words, operand, option_words, quote_word

STUB = "import json, os, sys\nopen(os.environ['SEEN'], 'w').write(json.dumps(sys.argv[1:]))\n"
NAMES = [
    "plain.zip",
    "two words.zip",
    "$(touch ran).zip",
    "`touch ran`.zip",
    "a;touch ran;.zip",
    "a&touch ran&.zip",
    "a|touch ran.zip",
    "a\ntouch ran\n.zip",
    "it's.zip",
    'say "hello".zip',
    "back\\slash\\n.zip",
    "~root.zip",
    "=ls",
    "$HOME.zip",
    "${PATH}.zip",
    "*.zip",
    "{a,b}.zip",
    "!!.zip",
    "#comment.zip",
    "100%s%%d.zip",
    "tab\there\r.zip",
    "right\u202eto left.zip",
    "unseen\u200b.zip",
    "colour\x1b[31m.zip",
    os.fsdecode(b"latin\xff\xfe.zip"),
    "größe 中.zip",
    "a\n-b%\\'\u202e7.zip",
]
PLAN = RepairPlan(
    target="t", state_dict=(), steps=(), rules=(), ambiguities=(), needs_accept=(), missing=(), complete=True
)
REPORT = KeyReport(
    target="t",
    state_dict=(),
    matched=(),
    missing=(),
    unexpected=(),
    reshaped=(),
    loads=False,
    says="",
    findings=(),
    plan=PLAN,
)
SHELLS = [shell for shell in ("sh", "bash", "dash", "zsh") if shutil.which(shell)]


@pytest.fixture
def heard(tmp_path: Path):
    """What a program of that name gets when the line is pasted; and that nothing else ran."""
    programs, place = tmp_path / "programs", tmp_path / "here"
    programs.mkdir()
    place.mkdir()
    (programs / "stub.py").write_text(STUB)
    for name in ("python", "inspector"):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} -S {programs / "stub.py"} "$@"\n')
        (programs / name).chmod(0o755)

    def run(line: str, shell: str = "sh") -> list[str]:
        seen = tmp_path / "seen"
        environment = {"PATH": f"{programs}:/usr/bin:/bin", "SEEN": str(seen), "PYTHONUTF8": "1"}
        done = subprocess.run([shell, "-c", line], cwd=place, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert list(place.iterdir()) == []
        found: list[str] = json.loads(seen.read_text())
        seen.unlink()
        return found

    return run


@pytest.mark.parametrize("shell", SHELLS)
def test_every_word_arrives_as_it_is(heard, shell):
    line = join_words(["inspector", *NAMES])
    assert heard(line, shell) == NAMES
    # One line, of characters that show what runs.
    assert line.isprintable()


def test_what_looks_like_an_option_is_none(heard):
    assert heard(join_words(["inspector", operand("-o.zip"), *option_words("--state", "-x")])) == [
        "./-o.zip",
        "--state=-x",
    ]
    assert quote_word("") == "''"


@pytest.mark.parametrize("name", [*NAMES, "-rf.zip", "--help"])
@pytest.mark.parametrize("partial", [False, True])
def test_the_line_that_exports_an_archive_runs_nothing_in_its_name(heard, name, partial):
    plan = replace(PLAN, format="", partial=partial)
    lines = python_code(plan, file_name=name)
    compile(lines, "lines", "exec")
    # Outside of the comments no line is made of the name.
    code = [line for line in lines.splitlines() if line and not line.startswith("#")]
    assert (
        code[1:]
        == [
            'state = torch.load("written.pth", map_location="cpu", weights_only=True)',
            "model.load_state_dict(state, strict=True)",
        ]
        or partial
    )
    (line,) = [line for line in lines.split("\n") if "inspector repair" in line]
    expected = ["-m", "inspector", "repair", operand(name), *(["--partial"] if partial else [])]
    assert heard(line.removeprefix("#").strip()) == [*expected, "--output", "written.pth"]


@pytest.mark.parametrize("name", [*NAMES, "-rf", "--export"])
def test_the_line_that_makes_a_map_again_runs_nothing(heard, name):
    steps = stated_preprocessing({"size": 8, "mean": [0.5] * 3, "std": [0.5] * 3}, "a test")
    asked = Request(
        file=name,
        pictures=(name,),
        methods=("grad-cam",),
        layers=(name,),
        classes=(1,),
        options=Options(),
        preprocessing=steps,
        series=(name,),
        box=name,
        state=name,
        target=name,
        names=name,
    )
    words = heard(command_line(asked, name))
    assert words[:3] == ["explain", operand(name), operand(name)]
    for option in ("--series", "--layer", "--box", "--state", "--target", "--names", "--export"):
        place = words.index(option) if option in words and not name.startswith("-") else words.index(f"{option}={name}")
        assert "=" in words[place] or words[place + 1] == name


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_to_a_question_can_be_pasted(heard, name):
    question = Ambiguity(id="twins", question="Which?", options=((name, "these"),))
    report = replace(REPORT, plan=replace(PLAN, ambiguities=(question,)))
    console = Console(width=4000, file=open(os.devnull, "w"), record=True)  # noqa: SIM115, PTH123
    console.print(keys_text(report))
    (line,) = [line for line in console.export_text().splitlines() if "--choose" in line]
    words = heard("inspector " + line.removesuffix("these").strip())
    assert words == ["--choose", f"twins={name}"]
