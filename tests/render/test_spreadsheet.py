"""Every CSV, of the command line and of the pages: names from files are text, numbers stay numbers."""

from __future__ import annotations

import ast
import csv
import io
from pathlib import Path

import numpy as np
import pytest
import torch

from inspector import open_checkpoint
from inspector.checkpoint.training_place import Place
from inspector.health.examine import examine
from inspector.render.explained_table import COLUMNS, row_of_error, table_csv
from inspector.render.spreadsheet import Number, csv_text
from inspector.render.strip import strip_columns

ROOT = Path(__file__).resolve().parents[2]
NAMES = [
    "=1+1", "+1", "-1", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "-0.5", "=HYPERLINK(\"x\")",
]  # fmt: skip


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_begins_like_a_formula_is_text(name: str) -> None:
    for ending in ("\n", "\r\n"):
        assert read(csv_text([name], [[name]], ending=ending)) == [[f"'{name}"], [f"'{name}"]]


@pytest.mark.parametrize("name", ["layer1.0.weight", "a=b", "a-b", " =1", "'=1", "1", 'a "b", c\nd', "größe"])
def test_any_other_name_is_as_it_is(name: str) -> None:
    assert read(csv_text(["x"], [[name]])) == [["x"], [name]]


def test_numbers_are_numbers() -> None:
    row = [-0.5, -3, float("nan"), None, Number("-1.25e-07"), np.float32(-0.5), np.int64(-7), 1e-9]
    assert read(csv_text(["a"] * 8, [row]))[1] == ["-0.5", "-3", "", "", "-1.25e-07", "-0.5", "-7.0", "1e-09"]


def test_the_table_of_maps() -> None:
    row = (*row_of_error("-x", checkpoint="=a", picture="@b"), *strip_columns(Place(epoch=-1.0), -0.5))
    head, cells = read(table_csv([row], ("epoch", "step", "agreement_with_last")))
    assert head[: len(COLUMNS)] == list(COLUMNS)
    assert [cells[0], cells[1], cells[len(COLUMNS) - 1]] == ["'=a", "'@b", "'-x"]
    assert cells[len(COLUMNS) :] == ["-1", "", "-0.500000"]


def test_the_tables_of_the_pages() -> None:
    from inspector.web.measuring import statistics_csv
    from inspector.web.tensor_table import table_csv as tensors_csv

    buffer = io.BytesIO()
    torch.save({"=2+3": torch.tensor([-1.5, 2.0])}, buffer)
    checkpoint = open_checkpoint(buffer.getvalue())
    assert checkpoint.weights is not None
    assert read(tensors_csv(checkpoint.weights.tensors))[1][:2] == ["'=2+3", "2"]
    head, cells = read(statistics_csv(examine(checkpoint)))
    assert cells[0] == "'=2+3"
    assert float(cells[head.index("Minimum")]) == -1.5


def test_no_other_place_writes_csv() -> None:
    found = set()
    for path in [*ROOT.glob("*.py"), *(ROOT / "pages").glob("*.py"), *(ROOT / "inspector").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if "csv" in names or (isinstance(node, ast.Attribute) and node.attr in ("to_csv", "to_clipboard")):
                found.add(path.relative_to(ROOT).as_posix())
    assert found == {"inspector/render/spreadsheet.py"}


def test_streamlits_own_export_of_a_table_is_not_offered() -> None:
    style = (ROOT / "inspector" / "web" / "static" / "style.css").read_text(encoding="utf-8")
    rule = next(line for line in style.splitlines() if "Download as CSV" in line)
    assert "stElementToolbarButton" in rule and "display: none" in rule
