"""Reports as strict JSON."""

from __future__ import annotations

import json
import math
from enum import StrEnum

import pytest

from inspector.checkpoint.source import BufferSource
from inspector.checkpoint.types import Checkpoint, Origin, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.findings import Finding, Severity
from inspector.keys.report import Proof, Verification
from inspector.render.json import as_json, as_plain


def test_field_names_are_the_keys_and_enums_their_values() -> None:
    finding = Finding(id="x", severity=Severity.WARNING, says="3 of 4", evidence=(("count", 3),))
    assert as_plain(finding) == {
        "id": "x",
        "severity": "warning",
        "says": "3 of 4",
        "subjects": [],
        "evidence": [["count", 3]],
        "remedy": "",
    }


@pytest.mark.parametrize(("value", "text"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_json_stays_strict(value: float, text: str) -> None:
    assert json.loads(as_json({"x": value}), parse_constant=pytest.fail) == {"x": text}


def test_derived_figures_are_said_once_for_every_face() -> None:
    tensor = TensorInfo(name="w", path=("w",), shape=(3, 4), dtype="float32", nbytes=48, storage_id="0")
    assert as_plain(tensor)["numel"] == 12
    assert as_plain(Verification(proofs=(Proof(id="strict", says="", passed=True),)))["holds"] is True
    assert as_plain(Verification(proofs=()))["holds"] is False


def test_the_open_file_is_no_data() -> None:
    root = Value(kind=ValueKind.MAPPING, type_name="dict", says="")
    checkpoint = Checkpoint(
        origin=Origin(name="x", nbytes=1), format="f", format_says="F", root=root, tensors=(), source=BufferSource(b"x")
    )
    plain = as_plain(checkpoint)
    assert "source" not in plain
    assert plain["origin"] == {"name": "x", "nbytes": 1, "sha256": None}


def test_enum_inside_mapping() -> None:
    class Colour(StrEnum):
        RED = "red"

    assert as_plain({"c": [Colour.RED], "n": None, "b": True}) == {"c": ["red"], "n": None, "b": True}


def test_no_name_of_a_file_gives_orders_to_the_terminal() -> None:
    """C1 controls come as two harmless bytes in UTF-8, and xterm obeys them; JSON readers get the same text back."""
    name = "é\x9b31m\u202e\u2028\ud800\U000e0041 ☃"
    made = as_json({"name": name})
    assert all(char.isprintable() for char in made.replace("\n", ""))
    assert "\\u009b31m\\u202e" in made and "é" in made and "☃" in made
    assert json.loads(made) == {"name": name}
