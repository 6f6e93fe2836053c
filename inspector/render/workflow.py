"""A check for GitHub Actions: annotations on files, a summary of the step in Markdown.

Source: docs.github.com, "Workflow commands": `::error file={name},title={title}::{message}`; % and line breaks are
escaped, in properties also : and comma. A step shows ten annotations of each level. The runner obeys such a line from
anybody, and `##[...]` anywhere in a line, so names from files must not begin one.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.findings import Finding, Severity
from inspector.lint.report import CheckedFile, CheckReport
from inspector.render.visible import one_line
from inspector.units import counted, shorten_middle

MOST_OF_A_LEVEL = 10
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTICE: "notice"}
_MESSAGE = 2_000
_ROWS = 500
_CELL = 400
# Of the step's summary GitHub takes 1 MiB.
_SUMMARY_NBYTES = 1_000_000
_MARKS = "\\`*_{}[]()#+-!|~@:"


def annotation_lines(report: CheckReport) -> Iterator[str]:
    """A line for each finding, ten at most of each level, worst first; then how many have none."""
    left = dict.fromkeys(_LEVELS.values(), 0)
    for severity, level in _LEVELS.items():
        for number, (file, finding) in enumerate(_of(report, severity)):
            if number >= MOST_OF_A_LEVEL:
                left[level] += 1
                continue
            place = f"file={_property(file.file)},title={_property(finding.id)}"
            yield f"::{level} {place}::{_data(says_of(file, finding))}"
    more = [counted(count, level) for level, count in left.items() if count]
    if more:
        yield f"And {', '.join(more)} without an annotation: GitHub shows {MOST_OF_A_LEVEL} of each level."


def says_of(file: CheckedFile, finding: Finding) -> str:
    """The finding's sentence on one line, with the member that it is about and what to do."""
    where = f"{file.member}: " if file.member else ""
    return shorten_middle(one_line(f"{where}{finding.says} {finding.remedy}".strip()), _MESSAGE)


def unobeyed(line: str) -> str:
    """A line of ours that the runner takes for no command, whatever name is in it."""
    line = line.replace("##[", "# #[")
    # It passes over blanks in front, and such a line of ours begins with a path.
    return f"./{line.lstrip()}" if line.lstrip().startswith("::") else line


def step_summary(report: CheckReport, headline: str) -> str:
    """Markdown. headline: how the check ended, in a sentence."""
    lines = [f"### {_cell('Model Inspector')}", "", _cell(headline), ""]
    found = [(severity, file, finding) for severity in _LEVELS for file, finding in _of(report, severity)]
    if found:
        lines += ["| Severity | File | Finding | |", "| --- | --- | --- | --- |"]
    size, shown = sum(map(len, lines)), 0
    for severity, file, finding in found[:_ROWS]:
        cells = (severity.value, file.path, finding.id, f"{finding.says} {finding.remedy}")
        row = f"| {' | '.join(_cell(shorten_middle(one_line(cell.strip()), _CELL)) for cell in cells)} |"
        size += len(row.encode())
        if size > _SUMMARY_NBYTES:
            break
        lines.append(row)
        shown += 1
    if shown < len(found):
        lines += ["", f"And {counted(len(found) - shown, 'finding')} more."]
    return "\n".join(lines) + "\n"


def _of(report: CheckReport, severity: Severity) -> Iterator[tuple[CheckedFile, Finding]]:
    for file in report.files:
        for finding in file.findings:
            if finding.severity is severity:
                yield file, finding


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A").replace("##[", "# #[")


def _property(text: str) -> str:
    # A file whose name has what cannot be seen gets no annotation on its page; the log would obey it.
    return _data(one_line(text)).replace(":", "%3A").replace(",", "%2C")


def _cell(text: str) -> str:
    """Text in a cell of a table: nothing in it is Markdown, HTML or a link."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("://", "&#58;//")
    return "".join(f"\\{char}" if char in _MARKS else char for char in plain)
