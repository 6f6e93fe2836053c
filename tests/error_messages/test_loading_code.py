"""Pasted loading code: 95 faults by kind and line, 100 healthy scripts left alone, corrected lines that run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from inspector.error_messages.explain import explain_error
from inspector.error_messages.loading_code.find import FAULTS
from inspector.error_messages.report import PastedError
from inspector.readers import open_checkpoint

HERE = Path(__file__).parent


def _cases(name: str) -> list[tuple[str, str]]:
    """(heading, code) of each part of a file of snippets."""
    parts = f"\n{(HERE / name).read_text(encoding='utf-8')}".split("\n### ")[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


BROKEN, HEALTHY = _cases("loading_broken.txt"), _cases("loading_healthy.txt")


def _code_errors(text: str, file: Path | None = None) -> Iterator[PastedError]:
    report = explain_error(text, checkpoint=open_checkpoint(file) if file is not None else None)
    yield from (error for error in report.errors if error.line)


def _only(text: str, file: Path | None = None) -> PastedError:
    (error,) = _code_errors(text, file)
    return error


@pytest.mark.parametrize("number", range(len(BROKEN)))
def test_a_fault_is_named_with_its_line(number: int) -> None:
    heading, code = BROKEN[number]
    kind, line = heading.split()
    error = _only(code)
    assert (error.kind, error.line) == (kind, int(line))
    assert error.patch and error.patch.strip() != code.splitlines()[error.line - 1].strip()
    assert error.quote.startswith(f"line {line}: ")


@pytest.mark.parametrize("number", range(len(HEALTHY)))
def test_a_healthy_script_is_left_alone(number: int) -> None:
    heading, code = HEALTHY[number]
    report = explain_error(code)
    assert report.errors == (), heading


def test_there_are_enough_and_every_kind_has_one() -> None:
    assert len(BROKEN) >= 95 and len(HEALTHY) >= 100
    assert {heading.split()[0] for heading, _ in BROKEN} == {fault.kind for fault in FAULTS}


def _net() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))


@pytest.fixture
def saved(tmp_path: Path) -> dict[str, Path]:
    """Files of one network: bare, in a checkpoint, wrapped, and the module itself."""
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    state = net.state_dict()
    files: dict[str, Any] = {
        "bare": state,
        "outer": {"epoch": 3, "ema": {n: t + 1 for n, t in state.items()}, "model_state_dict": state},
        "wrapped": {f"module.{name}": tensor for name, tensor in state.items()},
        "module": net,
    }
    for name, content in files.items():
        torch.save(content, tmp_path / f"{name}.pth")
    return {name: tmp_path / f"{name}.pth" for name in files}


PATCHED = [
    ("bare", "model.state_dict = torch.load(path)\n"),
    ("bare", "model.load_state_dict(path)\n"),
    ("bare", "model = model.load_state_dict(torch.load(path))\n"),
    ("outer", "model.load_state_dict(torch.load(path))\n"),
    ("outer", "ckpt = torch.load(path)\nmodel.load_state_dict(ckpt['state_dict'])\n"),
    ("wrapped", "model.load_state_dict(torch.load(path))\n"),
    ("bare", "model = nn.DataParallel(model)\nmodel.load_state_dict(torch.load(path))\n"),
]


@pytest.mark.parametrize(("file", "code"), PATCHED)
def test_the_corrected_line_loads_that_very_file(file: str, code: str, saved: dict[str, Path]) -> None:
    error = _only(code, saved[file])
    lines = code.splitlines()
    lines[error.line - 1 : error.line] = error.patch.splitlines()
    model = _net()
    exec("\n".join(lines), {"torch": torch, "nn": nn, "model": model, "path": str(saved[file])})
    wanted = torch.load(saved["bare"], weights_only=True)
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in model.state_dict().items())


def test_with_the_file_what_is_right_is_quiet(saved: dict[str, Path]) -> None:
    assert list(_code_errors("model.load_state_dict(torch.load(path))\nmodel.eval()\n", saved["bare"])) == []
    right = "ckpt = torch.load(path)\nmodel.load_state_dict(ckpt['model_state_dict'])\n"
    assert list(_code_errors(right, saved["outer"])) == []
    wrapped = "model = nn.DataParallel(model)\nmodel.load_state_dict(torch.load(path))\n"
    assert list(_code_errors(wrapped, saved["wrapped"])) == []


def test_the_file_names_the_entry(saved: dict[str, Path]) -> None:
    error = _only("model.load_state_dict(torch.load(path))\n", saved["outer"])
    assert error.kind == "outer-dictionary" and "its weights lie under ['model_state_dict']" in error.says
    error = _only("c = torch.load(path)\nmodel.load_state_dict(c['model'])\n", saved["outer"])
    assert error.kind == "entry-not-in-file" and "outer.pth has no entry 'model'" in error.says


def test_a_state_dict_used_as_a_model(saved: dict[str, Path]) -> None:
    code = "net = torch.load(path)\nnet.eval()\n"
    error = _only(code, saved["bare"])
    assert error.kind == "whole-model-or-state-dict" and "a state dict of 4 tensors" in error.says
    assert list(_code_errors(code, saved["module"])) == []
    error = _only("model.load_state_dict(torch.load(path, map_location='cpu'))\n", saved["module"])
    assert error.kind == "whole-model-or-state-dict" and "the file holds the module itself" in error.says


def test_weights_only_off_by_what_the_file_names(saved: dict[str, Path], tmp_path: Path) -> None:
    code = "s = torch.load(path, map_location='cpu', weights_only=False)\nmodel.load_state_dict(s)\n"
    needless = _only(code, saved["bare"])
    assert needless.kind == "weights-only-off" and "this one needs none of it" in needless.says and not needless.asks
    assert _only(code).asks


def test_a_device_by_the_file(tmp_path: Path, saved: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU is here: the devices of the file's tensors are written into what was read."""
    from dataclasses import replace

    checkpoint = open_checkpoint(saved["bare"])
    on_gpu = replace(checkpoint, tensors=tuple(replace(t, device="cuda:1") for t in checkpoint.tensors))
    code = "model.load_state_dict(torch.load(path))\n"
    (error,) = explain_error(code, checkpoint=on_gpu).errors
    assert error.kind == "no-map-location" and "(4 on cuda:1)" in error.says and not error.asks
    assert error.patch == "model.load_state_dict(torch.load(path, map_location='cpu'))\n"
    assert explain_error(code.replace("path)", "path, map_location=device)"), checkpoint=on_gpu).errors == ()


def test_nothing_pasted_is_run(tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'ran')!r}, 'w')\nmodel.load_state_dict('a.pth')\n"
    assert _only(code).kind == "path-as-state-dict"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "text",
    [
        "model.load_state_dict(" * 5_000,
        "torch.load" + ".a" * 20_000,
        "load = " + "-" * 20_000 + "1",
        "load = " + "1+" * 20_000 + "1",
        "load_state_dict\x00",
        "def load(:\n",
        "```\n" * 4_000 + "load",
        "x = torch.load(" + "lambda: " * 5_000 + "1)",
    ],
)
def test_strange_text_is_no_code(text: str) -> None:
    explain_error(text)


def test_code_and_its_traceback_together() -> None:
    code = "model = Net()\nmodel.load_state_dict('a.pth')\n"
    trace = "Traceback (most recent call last):\nTypeError: Expected state_dict to be dict-like, got <class 'str'>.\n"
    report = explain_error(code + trace)
    assert [(error.kind, error.line) for error in report.errors] == [("path-as-state-dict", 2)]


def test_lines_are_counted_in_the_pasted_text() -> None:
    text = "Why does it not learn?\n\n```python\nmodel = Net()\nmodel.state_dict = torch.load('a.pth')\n```\nThanks!\n"
    assert _only(text).line == 5
    assert (
        _only(">>> model = Net()\n>>> model.load_state_dict('a.pth')\nTraceback (most recent call last):\n").line == 2
    )
    assert _only("    model = Net()\r\n    model.load_state_dict('a.pth')\r\n").line == 2


def test_healthy_code_is_answered_as_code() -> None:
    report = explain_error("model.load_state_dict(torch.load('a.pth', map_location='cpu'))\nmodel.eval()\n")
    assert report.says.startswith("No fault that is known here stands in this code (3 lines, 2 loading calls)")


@pytest.mark.parametrize("lax", ["strict=False", "False"])
def test_a_corrected_line_is_not_silent_about_what_misses(saved: dict[str, Path], lax: str) -> None:
    """Names under "module." with strict=False load nothing and raise nothing: the line that is advised has to raise."""
    error = _only(f'model = Net()\nmodel = model.load_state_dict(torch.load("{saved["wrapped"]}"), {lax})\nmodel(x)')
    assert error.kind == "result-taken-for-model"
    assert "strict" not in error.patch and "False" not in error.patch
    assert any("strict=False is left out" in step for step in error.steps)
    with pytest.raises(RuntimeError, match="Missing key"):
        exec(error.patch, {"model": _net(), "torch": torch})
    strict = _only('model = model.load_state_dict(torch.load("m.pth"), strict=True)\nmodel(x)')
    assert "strict=True" in strict.patch and len(strict.steps) == 1


def test_a_corrected_line_that_keeps_strict_false_says_what_it_does() -> None:
    error = _only('model = nn.DataParallel(Net())\nmodel.load_state_dict = torch.load("m.pth")\n')
    assert not any("strict=False" in step for step in error.steps)
    lax = 'answer = model.load_state_dict("m.pth", strict=False)\nprint(answer)\n'
    error = _only(lax)
    assert "strict=False" in error.patch
    assert error.steps[-1].startswith("With strict=False names that do not fit are passed over")


def test_a_whole_checkpoint_that_may_be_nested_is_looked_into_where_no_file_tells(tmp_path: Path) -> None:
    text = "ckpt = torch.load('own.pth')\nmodel.load_state_dict(ckpt{}, strict=False)\n"
    (first, *_) = _only(text.format("")).steps
    assert "print(list(ckpt)[:5])" in first and "it is called. The Repair page's box" in first
    # An entry was taken already, and what was saved here is known.
    for other in (text.format("['model']"), "torch.save(net.state_dict(), 'own.pth')\n" + text.format("")):
        assert not any("one level down" in step for step in _only(other).steps)
    nested = tmp_path / "own.pth"
    torch.save({"model": {"a.weight": torch.ones(2, 2), "a.bias": torch.ones(2)}, "epoch": 3}, nested)
    outer, lax = _code_errors(text.format(""), nested)
    assert "['model']" in outer.says and not any("one level down" in step for step in lax.steps)
