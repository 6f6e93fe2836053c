"""What the drawing's element is handed, and whom it may name."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st

from inspector.graph.types import Box, BoxEdge
from inspector.web import drawing

INNER = Box(
    path="layer.0",
    label="0",
    kind="Block",
    module="layer.0",
    shape=("batch", 8, None),
    repeat=3,
    repeated=("layer.0", "layer.1", "layer.2"),
    children=(
        Box(path="layer.0.conv", label="conv", kind="Conv2d", module="layer.0.conv"),
        Box(path="layer.0/add", label="add", kind="add"),
    ),
    edges=(BoxEdge(source=0, target=1, shape=(), count=2),),
    entries=(0, 1),
    exits=(1,),
)
WHOLE = Box(
    path="",
    label="net",
    kind="Net",
    children=(INNER, Box(path="head", label="head", kind="Linear", module="head", shape=("batch", 8, None))),
    edges=(BoxEdge(source=0, target=1, shape=("batch", 8, None)),),
)


def test_the_tree_goes_as_lists_parents_first() -> None:
    columns = {"MACs": {"layer.0": 1.5, "head": float("nan"), "gone": 3.0}}
    drawn = json.loads(drawing.as_data(WHOLE, columns))
    assert drawn == {
        "label": ["net", "0", "conv", "add", "head"],
        "kind": ["Net", "Block", "Conv2d", "add", "Linear"],
        "path": ["", "layer.0", "layer.0.conv", "layer.0/add", "head"],
        "isModule": [0, 1, 1, 0, 1],
        "shape": [-1, 0, -1, -1, 0],
        "repeat": [1, 3, 1, 1, 1],
        "parent": [-1, 0, 1, 1, 0],
        "repeated": {"1": ["layer.0", "layer.1", "layer.2"]},
        "arrows": {"0": [0, 1, 0, 1], "1": [0, 1, 1, 2]},
        "entries": {"1": [0, 1]},
        "exits": {"1": [1]},
        # Not known, and no number: neither has a colour.
        "columns": {"MACs": [None, 1.5, None, None, None]},
        "shapes": ["batchx8x?", "scalar"],
        "weight": {},
    }


def test_a_tree_deeper_than_pythons_stack_is_handed_over() -> None:
    box = Box(path="x", label="x", kind="")
    for _ in range(3000):
        box = Box(path="x", label="x", kind="", children=(box,))
    assert json.loads(drawing.as_data(box, {}))["parent"][-1] == 2999


@pytest.mark.parametrize(("told", "heard"), [("head", ["Linear"]), ("layer.9", []), (None, []), (7, []), ("", ["Net"])])
def test_only_a_box_of_the_tree_is_told(monkeypatch: pytest.MonkeyPatch, told: Any, heard: list[str]) -> None:
    handed: dict[str, Any] = {}
    monkeypatch.setattr(drawing, "_component", lambda **given: handed.update(given))
    monkeypatch.setattr(drawing, "is_mounted", lambda: True)
    kinds: list[str] = []
    drawing.show_drawing(
        WHOLE, key="k", columns={}, chosen="head", on_choice=lambda box: kinds.append(box.kind), says="No arrows.",
        coloured="Size",
    )  # fmt: skip
    assert handed["data"]["chosen"] == "head" and handed["data"]["says"] == "No arrows."
    assert handed["data"]["coloured"] == "Size"
    assert handed["data"]["script"].startswith("/inspector/static/")
    monkeypatch.setattr(st, "session_state", {"k": SimpleNamespace(chosen=told)})
    handed["on_chosen_change"]()
    assert kinds == heard


def test_without_the_server_of_ours_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(drawing, "is_mounted", lambda: False)
    monkeypatch.setattr(drawing, "_component", lambda **given: said.append("drawn"))
    monkeypatch.setattr(st, "info", lambda text, **_: said.append(text))
    drawing.show_drawing(WHOLE, key="k", columns={}, chosen="", on_choice=lambda box: None)
    assert said == ["The drawing needs the server that app.py starts."]
