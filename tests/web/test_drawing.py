"""What the drawing's element is handed beside the boxes, and whom it may name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st

from inspector.graph.types import Box
from inspector.web import drawing

WHOLE = Box(path="", label="net", kind="Net", children=(Box(path="head", label="head", kind="Linear", module="head"),))


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
