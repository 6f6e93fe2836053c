"""A check for GitHub Actions: the runner parses its lines as `@actions/core` writes them, and obeys nobody else's."""

from __future__ import annotations

import re

from inspector.findings import Severity
from inspector.lint.report import CheckedFile
from inspector.render.checked import check_lines, end_lines, headline
from inspector.render.survey import row_line, summary_line
from inspector.render.workflow import MOST_OF_A_LEVEL, annotation_lines, step_summary, unobeyed
from inspector.survey.report import RowKind, Survey, SurveyRow
from tests.render.checked_reports import BAD, HOSTILE, MADE, ODD, bad_file, hostile_report, report_of

# What the runner takes for a command (actions/runner, ActionCommand.cs): at a line's beginning, or ##[ anywhere.
_COMMAND = re.compile(r"^\s*::(?P<name>[a-z-]+)(?: (?P<properties>[^:]*))?::(?P<data>.*)$")


def _unescaped(text: str) -> str:
    for code, char in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(code, char)
    return text


def test_one_finding_is_one_annotation() -> None:
    report = report_of(bad_file("models/a,b:c 100%.pth"))
    assert list(annotation_lines(report)) == [
        "::error file=models/a%2Cb%3Ac 100%25.pth,title=bad-numbers::3 of 12 are NaN. Go back."
    ]


def test_levels_are_those_of_the_runner_and_info_has_none() -> None:
    findings = (BAD.found("A."), BAD.found("B.", severity=Severity.WARNING), ODD.found("C."), MADE.found("D."))
    file = CheckedFile(path="a", nbytes=1, kind=RowKind.CHECKPOINT, findings=findings, fingerprints=("f",) * 4)
    lines = list(annotation_lines(report_of(file)))
    assert [line.split(" ")[0] for line in lines] == ["::error", "::warning", "::notice"]


def test_as_many_as_are_shown_then_how_many_more() -> None:
    assert MOST_OF_A_LEVEL == 10
    lines = list(annotation_lines(report_of(*(bad_file(f"{n}.pth") for n in range(13)))))
    assert len(lines) == 11
    assert lines[-1] == "And 3 errors without an annotation: GitHub shows 10 of each level."
    assert len(list(annotation_lines(report_of(*(bad_file(f"{n}.pth") for n in range(10)))))) == 10


def test_names_that_mean_something_are_names() -> None:
    for name in HOSTILE:
        (line,) = annotation_lines(report_of(bad_file(name, f"{name} is bad.")))
        assert line.isprintable() and "##[" not in line
        found = _COMMAND.match(line)
        assert found and found["name"] == "error"
        place, title = (_unescaped(one) for one in found["properties"].split(","))
        assert title == "title=bad-numbers"
        if name.isprintable() and "##[" not in name:
            assert place == f"file={name}"


def test_no_line_of_ours_is_obeyed_by_the_runner() -> None:
    report = hostile_report()
    for line in (*check_lines(report, everything=True), *end_lines(report)):
        assert not _COMMAND.match(line) and "##[" not in line and line.isprintable()
    assert unobeyed(" ::add-mask::x") == "./::add-mask::x" and unobeyed("a ::b::") == "a ::b::"


def test_no_line_of_a_scan_is_obeyed_by_the_runner() -> None:
    for name in HOSTILE:
        row = SurveyRow(
            path=name, nbytes=1, kind=RowKind.CHECKPOINT, format="npy", producer=name, finding="x", says=name
        )
        survey = Survey(name=name, rows=(row,), skipped=(name,), seconds=0.0)
        for line in (row_line(row), *summary_line(survey).splitlines()):
            assert not _COMMAND.match(line) and "##[" not in line and line.isprintable()
    plain = SurveyRow(path="a::b.pth", nbytes=1, kind=RowKind.CHECKPOINT)
    assert row_line(plain).endswith("  a::b.pth")


def test_the_summary_is_a_table_that_no_name_breaks() -> None:
    report = hostile_report()
    text = step_summary(report, headline(report))
    rows = [line for line in text.splitlines() if line.startswith("| error")]
    assert len(rows) == 2 * len(HOSTILE)
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == 5
        assert not re.search(r"<[a-z/]|(?<!\\)[`*_\[\]]|://", row)
    assert text.isprintable() or all(char.isprintable() or char == "\n" for char in text)


def test_the_summary_stays_below_what_the_runner_takes() -> None:
    files = [bad_file("x" * 300 + f"{n}.pth", "y" * 3000) for n in range(2_000)]
    text = step_summary(report_of(*files), "It fails.")
    assert len(text.encode()) < 1_048_576 and "more." in text.splitlines()[-1]


def test_a_clean_check_has_no_table() -> None:
    text = step_summary(report_of(CheckedFile(path="a", nbytes=1, kind=RowKind.CHECKPOINT)), "All is well.")
    assert "|" not in text and "All is well." in text
