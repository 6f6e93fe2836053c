"""A check as SARIF: every rule of the standard that concerns us, whatever a file is called."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest

from inspector.findings import Severity
from inspector.lint.kinds import checked_kinds
from inspector.lint.report import CheckedFile
from inspector.render import sarif
from inspector.render.sarif import as_sarif, uri_of
from inspector.survey.report import RowKind
from tests.render.checked_reports import BAD, HOSTILE, KINDS, MADE, ODD, bad_file, hostile_report, report_of
from tests.render.sarif_rules import assert_sarif


def _log(text: str) -> Any:
    text.encode("utf-8")
    return json.loads(text, parse_constant=pytest.fail)


def test_one_finding_is_one_result_with_its_rule_place_and_fingerprint() -> None:
    log = _log(as_sarif(report_of(bad_file("models/a.pth", subject="fc.weight")), KINDS))
    assert_sarif(log)
    (run,) = log["runs"]
    (result,) = run["results"]
    assert result["ruleId"] == "bad-numbers" and result["ruleIndex"] == 0 and result["level"] == "error"
    assert result["message"] == {"text": "3 of 12 are NaN. Go back."}
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "models/a.pth", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 1},
    }
    assert location["logicalLocations"] == [{"fullyQualifiedName": "fc.weight", "kind": "member"}]
    (fingerprint,) = result["partialFingerprints"].values()
    assert len(fingerprint) == 32
    assert run["artifacts"] == [{"location": {"uri": "models/a.pth", "uriBaseId": "%SRCROOT%"}, "length": 12}]
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 1}]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["bad-numbers", "how-made", "odd-name"]


def test_a_clean_check_is_a_run_without_results() -> None:
    clean = CheckedFile(path="a.pth", nbytes=1, kind=RowKind.CHECKPOINT)
    log = _log(as_sarif(report_of(clean), checked_kinds()))
    assert_sarif(log)
    (run,) = log["runs"]
    assert run["results"] == [] and run["artifacts"] == [] and run["invocations"][0]["exitCode"] == 0
    assert len(run["tool"]["driver"]["rules"]) == len(checked_kinds())


def test_severities_are_levels() -> None:
    findings = tuple(kind.found("It is.") for kind in (BAD, ODD, MADE))
    findings = (*findings, BAD.found("It may be.", severity=Severity.WARNING))
    file = CheckedFile(path="a", nbytes=1, kind=RowKind.CHECKPOINT, findings=findings, fingerprints=("f",) * 4)
    log = _log(as_sarif(report_of(file), KINDS))
    assert_sarif(log)
    assert [result["level"] for result in log["runs"][0]["results"]] == ["error", "note", "note", "warning"]


def test_names_that_mean_something_are_names() -> None:
    log = _log(as_sarif(hostile_report(), KINDS))
    assert_sarif(log)
    results = log["runs"][0]["results"]
    assert len(results) == 2 * len(HOSTILE)
    for name, result in zip(HOSTILE, results, strict=False):
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert unquote_to_bytes(uri) == os.fsencode(name)
        assert result["message"]["text"].isprintable()
    # Members are told of at the archive's own place, which is an artifact once.
    inside = results[len(HOSTILE) :]
    assert {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in inside} == {"a.zip"}
    uris = [artifact["location"]["uri"] for artifact in log["runs"][0]["artifacts"]]
    assert uris.count("a.zip") == 1 and len(uris) == len(HOSTILE) + 1


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a b/c.pth", "a%20b/c.pth"),
        ("100%.pth", "100%25.pth"),
        ("x:y.pth", "x%3Ay.pth"),
        ("a?b#c.pth", "a%3Fb%23c.pth"),
        ("/data/a.pth", "file:///data/a.pth"),
        ("C:/data/a.pth", "file:///C%3A/data/a.pth"),
        (os.fsdecode(b"\xff.pth"), "%FF.pth"),
    ],
)
def test_a_path_is_a_uri(path: str, uri: str) -> None:
    assert uri_of(path) == uri


def test_a_subject_named_twice_is_one_logical_location() -> None:
    finding = BAD.found("Twice.", subjects=("w", "w", "v", *(f"t{n}" for n in range(40))))
    file = CheckedFile(path="a", nbytes=1, kind=RowKind.CHECKPOINT, findings=(finding,), fingerprints=("f",))
    log = _log(as_sarif(report_of(file), KINDS))
    assert_sarif(log)
    names = [one["fullyQualifiedName"] for one in log["runs"][0]["results"][0]["locations"][0]["logicalLocations"]]
    assert names == ["w", "v", *(f"t{n}" for n in range(8))]


def test_what_there_is_no_room_for_is_the_least_severe_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "_MOST", 2)
    odd = CheckedFile(path="o", nbytes=1, kind=RowKind.CHECKPOINT, findings=(ODD.found("Odd."),), fingerprints=("f",))
    log = _log(as_sarif(report_of(odd, bad_file("a"), bad_file("b")), KINDS))
    assert_sarif(log)
    (run,) = log["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["bad-numbers", "bad-numbers"]
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"] == "1 finding left out: 2 are taken."
