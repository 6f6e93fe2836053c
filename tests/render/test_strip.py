"""A strip's captions, its rows of twelve, and its columns of the table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inspector.cam.report import Crop, Score
from inspector.checkpoint.training_place import Place
from inspector.findings import Finding, Severity
from inspector.render.sheet import Cell, sheet
from inspector.render.strip import strip_columns, strip_lines, strip_rows
from tests.render.test_overlay import explanation

MADE = replace(
    explanation(
        np.zeros((2, 2)), Crop(left=0, top=0, width=2, height=2, picture_width=2, picture_height=2)
    ),
    target=Score(index=3, name="star", logit=1.5, probability=0.25),
    raw_minimum=-0.5,
    raw_maximum=2.0,
)  # fmt: skip


def test_captions_tell_a_map_from_its_neighbours() -> None:
    lines = strip_lines(MADE, "a.pth", Place(epoch=3, step=1e6), one_scale=False)
    assert lines == ("a.pth", "epoch 3, step 1000000", "star 25.0 %", "-0.5 to 2 · its own scale")
    number = replace(MADE, target=Score(index=3, name=None, logit=1.5, probability=None))
    assert strip_lines(number, "a", Place(epoch=0.5), one_scale=True) == (
        "a",
        "epoch 0.5",
        "class 3 1.5",
        "-0.5 to 2 · one scale for all",
    )


def test_an_empty_map_says_so_where_the_scale_would_stand() -> None:
    empty = Finding(id="constant-map", severity=Severity.WARNING, subjects=(), says="", evidence=(), remedy="")
    lines = strip_lines(replace(MADE, findings=(empty,)), "a", Place(), one_scale=True)
    assert lines[1] == "no epoch or step stated"
    assert lines[3].endswith("· constant-map")


def test_a_row_holds_twelve_and_captions_have_their_room() -> None:
    cells = [Cell(pixels=None, lines=("",) * 4)] * 25
    assert [len(row) for row in strip_rows(cells)] == [12, 12, 1]
    assert sheet([cells[:1]]).shape == (8 + 224 + 4 * 18 + 8, 8 + 224 + 8, 3)
    assert sheet([[Cell(pixels=None, lines=("",))]]).shape[0] == 8 + 224 + 2 * 18 + 8


def test_columns_are_empty_where_nothing_is_stated() -> None:
    assert strip_columns(Place(), float("nan")) == ("", "", "")
    assert strip_columns(Place(epoch=1.25, step=40), -0.5) == ("1.25", "40", "-0.500000")
