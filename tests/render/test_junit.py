"""A check as JUnit XML: parsed by the standard library, whatever a file is called."""

from __future__ import annotations

from xml.etree import ElementTree

from inspector.findings import Severity
from inspector.lint.report import CheckedFile
from inspector.render.junit import as_junit
from inspector.survey.kinds import POINTER_FILE
from inspector.survey.report import RowKind
from tests.render.checked_reports import BAD, HOSTILE, MADE, ODD, bad_file, hostile_report, report_of


def test_a_suite_per_file_and_a_failure_from_fail_on_upwards() -> None:
    several = CheckedFile(
        path="b.pth",
        nbytes=1,
        kind=RowKind.CHECKPOINT,
        findings=(
            BAD.found("One."),
            BAD.found("Two.", severity=Severity.WARNING),
            ODD.found("Odd."),
            MADE.found("Made."),
        ),
        fingerprints=("f",) * 4,
    )
    pointer = CheckedFile(
        path="c.pth",
        nbytes=1,
        kind=RowKind.UNREADABLE,
        findings=(POINTER_FILE.found("A pointer.", severity=Severity.NOTICE),),
        fingerprints=("f",),
    )
    clean = CheckedFile(path="a.pth", nbytes=1, kind=RowKind.CHECKPOINT)
    notes = CheckedFile(path="notes.md", nbytes=1, kind=RowKind.OTHER)
    root = ElementTree.fromstring(as_junit(report_of(clean, several, pointer, notes)).encode())
    assert root.tag == "testsuites" and root.get("tests") == "6" and root.get("failures") == "2"
    a, b, c = root.findall("testsuite")
    assert [case.get("name") for case in a] == ["clean"] and not list(a[0])
    assert [case.get("name") for case in b] == ["bad-numbers", "bad-numbers 2", "how-made", "odd-name"]
    assert b.get("failures") == "2" and [case[0].tag for case in b] == [
        "failure",
        "failure",
        "system-out",
        "system-out",
    ]
    assert b[0][0].get("message") == "One."
    assert c.get("skipped") == "1" and c[0][0].tag == "skipped"


def test_names_that_mean_something_are_names() -> None:
    text = as_junit(hostile_report())
    assert "\x1b" not in text and "\x00" not in text and "\ufffe" not in text and "\u202e" not in text
    root = ElementTree.fromstring(text.encode("utf-8"))
    suites = root.findall("testsuite")
    assert len(suites) == 2 * len(HOSTILE)
    assert suites[0].get("name") == "a\\n::error file=x::owned.pth"
    assert suites[5].get("name") == HOSTILE[5]


def test_the_sum_of_the_suites_is_the_whole() -> None:
    root = ElementTree.fromstring(as_junit(report_of(bad_file("a"), bad_file("b"), fail_on=Severity.ERROR)).encode())
    for what in ("tests", "failures", "errors"):
        assert int(root.get(what, "")) == sum(int(suite.get(what, "")) for suite in root)
