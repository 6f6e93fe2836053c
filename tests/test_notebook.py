"""Reports in a notebook: what they show, that nothing of a file is markup there, and a real kernel where one is."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inspector import diagnose, make_report, notebook, open_checkpoint, recognise, target_of_candidate
from tests.file_report.made import ROOT, SAMPLES, hostile_file


class _Formatter:
    def __init__(self) -> None:
        self.told: dict[tuple[str, str], Callable[[Any], str]] = {}

    def for_type_by_name(self, module: str, name: str, draw: Callable[[Any], str]) -> None:
        self.told[module, name] = draw


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], Callable[[Any], str]]:
    formatter = _Formatter()
    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": formatter}))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]
    assert notebook.show_reports()
    return formatter.told


def test_every_type_that_is_named_is_there(told: dict[tuple[str, str], Callable[[Any], str]]) -> None:
    assert {name for _, name in told} == {"Checkpoint", "KeyReport", "Explanation", "FileReport"}
    for module, name in told:
        assert getattr(import_module(module), name).__module__ == module


def test_without_a_notebook_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))  # type: ignore[arg-type]
    assert not notebook.show_reports()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not notebook.show_reports()


def test_a_checkpoint_shows_its_four_sentences_and_a_report_the_same() -> None:
    checkpoint = open_checkpoint(SAMPLES / "shapes_dp.pth.tar")
    shown = notebook.checkpoint_html(checkpoint)
    assert [word for word in ("Model", "Loading", "Code", "Noticed") if f">{word}</td>" in shown] == [
        "Model", "Loading", "Code", "Noticed",
    ]  # fmt: skip
    assert "All 338 tensors fit once &quot;module.&quot; is dropped." in shown
    assert notebook.file_report_html(make_report(checkpoint, numbers=False)) == shown


def test_a_diagnosis_shows_its_rules_and_what_is_left() -> None:
    checkpoint = open_checkpoint(SAMPLES / "shapes_dp.pth.tar")
    best = recognise(checkpoint).best
    assert best is not None
    shown = notebook.keys_html(diagnose(checkpoint, target_of_candidate(best)))
    assert ">338 keys</td>" in shown and "module.conv1.0.weight → conv1.0.weight" in shown
    assert "Left over" not in shown


def test_nothing_of_a_file_is_markup(tmp_path: Path) -> None:
    shown = notebook.checkpoint_html(open_checkpoint(hostile_file(tmp_path)))
    assert set(re.findall(r"<(\w+)", shown)) == {"div", "b", "br", "small", "table", "tr", "td"}


@pytest.mark.skipif(
    find_spec("nbclient") is None or find_spec("ipykernel") is None, reason="needs nbclient and ipykernel"
)
def test_a_real_kernel_shows_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    file = str(SAMPLES / "shapes_dp.pth.tar")
    cells = [
        "import inspector, sys; print(sorted({'torch', 'numpy'} & set(sys.modules)))",
        f"checkpoint = inspector.open_checkpoint({file!r}); checkpoint",
        "inspector.diagnose(checkpoint, inspector.target_of_candidate(inspector.recognise(checkpoint).best))",
        "inspector.make_report(checkpoint, numbers=False)",
        "from PIL import Image\nready = inspector.ready_model(checkpoint)\n"
        "inspector.explain(ready.model, Image.new('RGB', (64, 64), 'red'), preprocessing=ready.preprocessing)",
    ]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    NotebookClient(made, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [cell.outputs[-1] for cell in made.cells]
    assert outputs[0].text.strip() == "[]"
    shown = [output.data["text/html"] for output in outputs[1:]]
    assert "Fails as it is" in shown[0] and "338 keys" in shown[1] and "Fails as it is" in shown[2]
    assert 'src="data:image/png;base64,' in shown[3] and "grad-cam at " in shown[3]
