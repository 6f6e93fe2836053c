"""A report read back: from the page, from the JSON, from an older version; and what is none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector import make_report, open_checkpoint, read_report, report_html, report_json
from inspector.cam.report import Preprocessing, Score
from inspector.errors import ReadError
from inspector.file_report import read, versions
from inspector.file_report.report import FileReport, MapFacts
from inspector.findings import Finding
from inspector.reports_from_json import KEPT, report_from
from tests.file_report.made import ROOT, SAMPLES, hostile_file, write_safetensors

DATA = Path(__file__).parent / "data"
jsonschema = pytest.importorskip("jsonschema", reason="checks reports against the schema")


def kept_map(png: bytes = b"") -> MapFacts:
    steps = Preprocessing(
        resize=(64, 64), crop=None, mean=(0.5,), std=(0.25,), channels=1, interpolation="bilinear",
        source="stated default", assumed=True,
    )  # fmt: skip
    target = Score(index=1, name="</script>cat", logit=float("nan"), probability=0.75)
    return MapFacts(
        picture="a.png", picture_sha256="0" * 64, method="grad-cam", layer="layer4", asked="class", target=target,
        scores=(target,), preprocessing=steps, command="inspector explain", findings=(), png=png,
    )  # fmt: skip


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[FileReport]:
    folder = tmp_path_factory.mktemp("reports")
    nan = write_safetensors(folder / "nan.safetensors", {"a.weight": np.full((2, 3), np.nan, np.float32)})
    made = [
        make_report(open_checkpoint(SAMPLES / "shapes_dp.pth.tar"), numbers=False),
        make_report(open_checkpoint(SAMPLES / "shapes_sick.pth")),
        make_report(open_checkpoint(SAMPLES / "bare_tensor.pt")),
        make_report(open_checkpoint(hostile_file(folder))),
        make_report(open_checkpoint(nan)),
    ]
    return [*made, replace(made[0], maps=(kept_map(b"picture"),))]


def _validator() -> Any:
    return jsonschema.Draft202012Validator(json.loads((ROOT / "docs/schema/report-1.json").read_text()))


def test_a_report_comes_back_from_its_page_and_from_its_json(reports: list[FileReport], tmp_path: Path) -> None:
    for report in reports[:-1]:
        for name, text in (("r.html", report_html(report)), ("r.json", report_json(report))):
            (tmp_path / name).write_text(text, encoding="utf-8")
            assert read_report(tmp_path / name) == report


def test_of_a_map_all_but_its_picture_comes_back(reports: list[FileReport], tmp_path: Path) -> None:
    (tmp_path / "r.html").write_text(report_html(reports[-1]), encoding="utf-8")
    (found,) = read_report(tmp_path / "r.html").maps
    assert np.isnan(found.target.logit) and found.png == b""
    assert (found.target.name, found.preprocessing, found.layer) == ("</script>cat", kept_map().preprocessing, "layer4")


def test_reports_are_what_the_schema_says(reports: list[FileReport]) -> None:
    validator = _validator()
    validator.check_schema(validator.schema)
    for report in reports:
        plain = json.loads(report_json(report))
        assert [error.message for error in validator.iter_errors(plain)] == []
        assert _unpublished(plain, validator.schema, validator.schema["$defs"]) == set()


def _unpublished(value: Any, schema: dict[str, Any], named: dict[str, Any]) -> set[str]:
    """Fields that are written and that the schema does not tell of."""
    schema = named[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind != {"type": "null"}]
    if isinstance(value, dict):
        (kind,) = kinds
        known = (named[kind["$ref"].rpartition("/")[2]] if "$ref" in kind else kind)["properties"]
        inside = [_unpublished(value[key], known[key], named) for key in value if key in known]
        return (value.keys() - known.keys()).union(*inside)
    if isinstance(value, list) and len(kinds) == 1:
        rows = kinds[0].get("prefixItems") or [kinds[0]["items"]] * len(value)
        return set().union(*(_unpublished(one, kind, named) for one, kind in zip(value, rows, strict=True)))
    return set()


@pytest.mark.parametrize(
    ("field", "value"), [("file", None), ("answers", [{"says": 1}]), ("findings", {}), ("schema", "x")]
)
def test_the_schema_refuses_what_is_none(reports: list[FileReport], field: str, value: object) -> None:
    assert not _validator().is_valid({**json.loads(report_json(reports[0])), field: value})


@pytest.mark.parametrize("name", ["report-1.html", "report-1.json"])
def test_a_report_of_the_first_version_stays_readable(name: str) -> None:
    """Written by the first program that wrote any; never to be written anew."""
    report = read_report(DATA / name)
    assert report.engine.version == "0.1.0" and report.file.name == "lstm_dp.safetensors"
    assert [answer.topic.value for answer in report.answers] == ["model", "loading", "code", "noticed"]
    assert [(t.name, t.shape) for t in report.tensors][:1] == [("module.embed.weight", (12, 8))]
    assert report.tensors[0].numbers is not None and report.tensors[0].numbers.zero == 0
    assert report.fingerprint is not None and report.parameters is not None


def test_the_first_version_is_what_its_schema_says() -> None:
    assert [error.message for error in _validator().iter_errors(json.loads((DATA / "report-1.json").read_text()))] == []


def test_what_was_added_later_is_passed_over_and_what_was_not_there_takes_its_default() -> None:
    plain = json.loads((DATA / "report-1.json").read_text())
    del plain["maps"], plain["not_examined"]
    report = read.report_from_plain({**plain, "weather": "fine"}, "r.json")
    assert report.maps == () and report.not_examined == ()


def test_an_older_version_is_brought_up_to_today(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it will be when a second version renames a field."""
    plain = json.loads((DATA / "report-1.json").read_text())
    plain["notes"] = plain.pop("claims")
    for module in (read, versions):
        monkeypatch.setattr(module, "VERSION", 2)
    monkeypatch.setitem(versions.UPGRADES, 1, lambda old: {**old, "claims": [*old["notes"], "brought up"]})
    assert read.report_from_plain(plain, "r.json").claims[-1] == "brought up"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is no report"),
        ("<html></html>", "is no report"),
        ('<script type="application/json" id="model-inspector-report">', "is no report"),
        ("[" * 100_000, "is no report"),
        ('{"schema": "other/report/1"}', "is no report"),
        ('{"schema": "model-inspector/report/0"}', "is no report"),
        ('{"schema": "model-inspector/report/2"}', "version 2; this program knows versions up to 1"),
        ('{"schema": "model-inspector/report/1"}', "its fields are not those of one"),
        ("\udc80", "is no report"),
    ],
)
def test_what_is_no_report_is_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "r.html").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ReadError, match=says):
        read_report(tmp_path / "r.html")


def test_a_report_of_a_process_is_still_read_to_the_letter() -> None:
    """What was relaxed for kept reports is not for those that somebody's code wrote just now."""
    score = {"index": 1, "name": None, "logit": 0.5, "probability": None}
    assert report_from(Score, score).logit == 0.5
    with pytest.raises(TypeError):
        report_from(Score, {**score, "logit": "NaN"})
    assert np.isnan(report_from(Score, {**score, "logit": "NaN"}, KEPT).logit)
    with pytest.raises(TypeError):
        report_from(Finding, {"id": "x", "severity": "info", "says": "x"})
    assert report_from(Finding, {"id": "x", "severity": "info", "says": "x"}, KEPT).subjects == ()
    with pytest.raises(TypeError):
        report_from(Finding, {"severity": "info", "says": "x"}, KEPT)
