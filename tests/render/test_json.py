"""Reports as strict JSON."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from enum import StrEnum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.cam.report import Preprocessing
from inspector.checkpoint.source import BufferSource
from inspector.checkpoint.types import Checkpoint, Origin, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.findings import Finding, Severity
from inspector.keys.report import Cost, Evidence, Proof, Step, StepKind, Verification
from inspector.render.json import as_json, as_plain, write_json


def test_field_names_are_the_keys_and_enums_their_values() -> None:
    finding = Finding(id="x", severity=Severity.WARNING, says="3 of 4", evidence=(("count", 3),))
    assert as_plain(finding) == {
        "id": "x",
        "severity": "warning",
        "says": "3 of 4",
        "subjects": [],
        "evidence": [["count", 3]],
        "remedy": "",
        "title": "",
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


def test_where_a_tensor_or_a_number_comes_from_is_data() -> None:
    """Text under the name of the open file's field: it was left out with it."""
    step = Step(
        kind=StepKind.KEEP,
        source="module.w",
        target="w",
        rule="",
        reason="",
        cost=Cost.LOSSLESS,
        evidence=Evidence.EXACT_NAME,
    )
    assert as_plain(step)["source"] == "module.w"
    assert as_plain(replace(step, kind=StepKind.FILL, source=None))["source"] is None
    steps = Preprocessing(
        resize=None,
        crop=None,
        mean=(0.0,),
        std=(1.0,),
        channels=1,
        interpolation="bilinear",
        source="here",
        assumed=True,
    )
    assert as_plain(steps)["source"] == "here"


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


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)


@settings(deadline=None)
@given(
    st.recursive(
        _LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    st.sampled_from([None, 0, 1, 2]),
)
def test_the_text_is_the_one_that_json_makes_of_the_plain_data(value: object, indent: int | None) -> None:
    expected = json.dumps(as_plain(value), indent=indent, ensure_ascii=False, allow_nan=False)
    spelled = "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in expected)
    assert as_json(value, indent=indent) == spelled


def test_the_pieces_of_a_long_report_are_small() -> None:
    pieces: list[str] = []
    report = {"rows": [{"name": f"layer.{i}", "shape": (3, i), "none": (), "more": {}} for i in range(20_000)]}
    write_json(report, pieces.append)
    assert max(map(len, pieces)) < 100_000
    assert len(pieces) > 10
    assert "".join(pieces) == json.dumps(as_plain(report), indent=2)
