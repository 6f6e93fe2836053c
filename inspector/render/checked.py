"""A check as lines for a terminal or a log: one for each finding, with its file in front, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.findings import Severity
from inspector.lint.report import CheckReport
from inspector.render.json import as_json, fields_of
from inspector.render.visible import one_line
from inspector.render.workflow import unobeyed
from inspector.survey.kinds import FILE_CHANGED
from inspector.survey.report import RowKind
from inspector.units import counted, human_bytes

_WORDS = ((Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.NOTICE, "note"))
_GONE = 20


def check_lines(report: CheckReport, *, everything: bool = False) -> Iterator[str]:
    """The findings, worst of each file first, then the end. everything: also what is info, and files without any."""
    for file in report.files:
        shown = [one for one in file.findings if everything or one.severity is not Severity.INFO]
        for finding in shown:
            yield unobeyed(f"{one_line(file.path)}: {finding.severity.value}: {finding.id}: {one_line(finding.says)}")
            if finding.remedy:
                yield f"    {unobeyed(one_line(finding.remedy))}"
        if everything and not shown:
            yield unobeyed(f"{one_line(file.path)}: clean: {file.format or file.kind.value}")
    yield from end_lines(report)


def end_lines(report: CheckReport) -> Iterator[str]:
    """How many of what, what was not looked at, and whether it fails."""
    for entry in report.gone[:_GONE]:
        yield unobeyed(f"Gone from the baseline's findings: {one_line(entry.path)}: {one_line(entry.id)}")
    if len(report.gone) > _GONE:
        yield f"Gone from the baseline's findings: {len(report.gone) - _GONE:,} more"
    for what in report.skipped:
        yield unobeyed(f"Not examined: {one_line(what)}")
    yield unobeyed(headline(report))


def headline(report: CheckReport) -> str:
    """The check in one paragraph."""
    read = sum(file.kind is RowKind.CHECKPOINT for file in report.files)
    other = sum(file.kind is RowKind.OTHER for file in report.files)
    unread = len(report.files) - read - other
    kinds = [counted(read, "checkpoint")]
    if unread:
        kinds.append(f"{unread:,} unread")
    if other:
        kinds.append(counted(other, "other file"))
    counts = [counted(report.count(severity), word) for severity, word in _WORDS if report.count(severity)]
    aside = [f"{report.known:,} known from {one_line(report.baseline)}"] if report.known and report.baseline else []
    if report.known and not report.baseline:
        aside.append(f"{report.known:,} known from now on")
    if report.muted:
        by = f" (settings: {one_line(report.settings)})" if report.settings else ""
        aside.append(f"{report.muted:,} ignored or not selected{by}")
    verdict = f"Fails: something is at or above {report.fail_on.value}."
    if not report.failed:
        verdict = f"Passes: nothing is at or above {report.fail_on.value}."
    found = "; ".join([", ".join(counts) or "no findings", *aside])
    end = f"{_depth(report)} {verdict} Nothing in them was executed."
    return f"{', '.join(kinds)} in {report.seconds:.1f} s: {found}. {end}"


def _depth(report: CheckReport) -> str:
    """Whether numbers were read. Those of a file that changed meanwhile are of no one content, and not kept."""
    if report.headers:
        return "Headers only, no numbers were read."
    read = [file for file in report.files if file.kind is RowKind.CHECKPOINT]
    changed = sum(any(one.id == FILE_CHANGED.id for one in file.findings) for file in read)
    if not read:
        return "No numbers were read."
    unkept = f"What was read of {counted(changed, 'checkpoint')} that changed meanwhile does not count."
    if changed == len(read):
        return unkept
    most = report.weights_up_to
    depth = "Numbers were read." if most is None else f"Numbers of files up to {human_bytes(most)} were read."
    return f"{depth} {unkept}" if changed else depth


def check_json(report: CheckReport) -> str:
    """The report as JSON, with its worst severity and whether it fails."""
    return as_json({**fields_of(report), "worst": report.worst, "failed": report.failed}) + "\n"
