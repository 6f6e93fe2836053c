"""A check as JUnit XML: a suite per file, a case per kind of finding, a failure where it counts.

There is no standard; the attributes are those that Jenkins and GitLab read.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from inspector.findings import Finding
from inspector.lint.numbers import NUMBERS_LEFT
from inspector.lint.report import CheckedFile, CheckReport
from inspector.render.visible import one_line
from inspector.survey.kinds import POINTER_FILE
from inspector.survey.report import RowKind
from inspector.units import shorten_middle

_MESSAGE = 2_000
_CLEAN = "clean"
# On purpose: the case neither passed nor failed.
_NOT_LOOKED_AT = (POINTER_FILE.id, NUMBERS_LEFT.id)


def as_junit(report: CheckReport) -> str:
    """The document. Control characters are written out before anything is escaped: XML 1.0 has no place for them."""
    files = [file for file in report.files if file.findings or file.kind is not RowKind.OTHER]
    failures = sum(_fails(report, finding) for file in files for finding in file.findings)
    suites = [_suite(report, file) for file in files]
    tests = sum(_cases_of(file) for file in files)
    head = f'<testsuites name="Model Inspector" tests="{tests}" failures="{failures}" errors="0" '
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'{head}time="{report.seconds:.3f}">',
            *suites,
            "</testsuites>",
            "",
        ]
    )


def _suite(report: CheckReport, file: CheckedFile) -> str:
    name = _attribute(file.path)
    failures = sum(_fails(report, finding) for finding in file.findings)
    skipped = 0
    lines = []
    for ident, finding in _cases(file):
        if finding is None:
            lines.append(f"    <testcase classname={name} name={_attribute(ident)} />")
            continue
        lines.append(f"    <testcase classname={name} name={_attribute(ident)}>")
        message, text = _attribute(finding.says), _text(f"{finding.severity.value}: {finding.says} {finding.remedy}")
        if _fails(report, finding):
            lines.append(f"      <failure type={_attribute(ident)} message={message}>{text}</failure>")
        elif finding.id in _NOT_LOOKED_AT:
            skipped += 1
            lines.append(f"      <skipped message={message} />")
        else:
            lines.append(f"      <system-out>{text}</system-out>")
        lines.append("    </testcase>")
    counts = f'tests="{_cases_of(file)}" failures="{failures}" errors="0" skipped="{skipped}"'
    return "\n".join([f"  <testsuite name={name} {counts}>", *lines, "  </testsuite>"])


def _cases(file: CheckedFile) -> Iterator[tuple[str, Finding | None]]:
    """(name, finding): equal kinds are told apart by a number; a file without findings is one case that passes."""
    if not file.findings:
        yield _CLEAN, None
    for ident, found in groupby(sorted(file.findings, key=lambda finding: finding.id), lambda finding: finding.id):
        for number, finding in enumerate(found, 1):
            yield ident if number == 1 else f"{ident} {number}", finding


def _cases_of(file: CheckedFile) -> int:
    return max(1, len(file.findings))


def _fails(report: CheckReport, finding: Finding) -> bool:
    return finding.severity.rank >= report.fail_on.rank


def _attribute(text: str) -> str:
    return quoteattr(shorten_middle(one_line(text.strip()), _MESSAGE))


def _text(text: str) -> str:
    return escape(shorten_middle(one_line(text.strip()), _MESSAGE))
