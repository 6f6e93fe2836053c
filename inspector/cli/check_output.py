"""Where a check's report goes: standard output in one format, files in others, the step's summary of a workflow."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.ending import printing
from inspector.cli.options import use_utf8
from inspector.cli.output import check_place, written_whole
from inspector.errors import ExportError, UsageError
from inspector.side_files import PathKind, kind_of_path, reason_of, shown_name

if TYPE_CHECKING:
    from inspector.lint.report import CheckReport

_SUMMARY = "GITHUB_STEP_SUMMARY"


class Format(StrEnum):
    """How a report is written."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"


_MARKDOWN = "markdown"
_OF_ENDINGS = {
    ".sarif": Format.SARIF,
    ".json": Format.JSON,
    ".xml": Format.JUNIT,
    ".md": _MARKDOWN,
    ".txt": Format.TEXT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPlan:
    """shown: on standard output. files: (where, format) of each."""

    shown: Format
    files: tuple[tuple[Path, str], ...] = ()


def outputs_of(
    chosen: Format | None, outputs: Iterable[Path], baseline: Path | None, inputs: Iterable[str]
) -> OutputPlan:
    """What goes where; what is written to a file is not printed besides. Raises UsageError where nothing can be
    written, or only over a checkpoint."""
    inputs = tuple(inputs)
    files = tuple((path, _OF_ENDINGS.get(path.suffix.lower(), chosen or Format.TEXT)) for path in outputs)
    for path in (*(path for path, _ in files), *((baseline,) if baseline is not None else ())):
        _check_name(path, inputs)
    shown = chosen or Format.TEXT
    if any(form is shown for _, form in files):
        shown = Format.TEXT
    return OutputPlan(shown=shown, files=files)


def _check_name(path: Path, inputs: tuple[str, ...]) -> None:
    from inspector.survey.row import is_named_as_checkpoint

    check_place(path, inputs)
    if is_named_as_checkpoint(path.name):
        raise UsageError(
            f"{shown_name(path)} is a checkpoint's name, and a report is none.", hint="Name it report.sarif, say."
        )


def write_reports(
    report: CheckReport, plan: OutputPlan, texts: Iterable[tuple[Path, str]], *, everything: bool
) -> None:
    """Write the files of the plan and the given texts, each whole or not at all. Raises ExportError."""
    made = [(path, "".join(_pieces(report, form, everything))) for path, form in plan.files]
    for path, text in (*made, *texts):
        with written_whole(path) as temporary:
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")


def show_report(report: CheckReport, form: Format, *, everything: bool) -> None:
    """Print it; for GitHub the step's summary is written, too, where a workflow runs."""
    if form is not Format.TEXT:
        use_utf8()
    with printing():
        for piece in _pieces(report, form, everything):
            print(piece, end="")
    summary = os.environ.get(_SUMMARY, "")
    if form is Format.GITHUB and summary:
        _append(summary, "".join(_pieces(report, _MARKDOWN, everything)))


def _pieces(report: CheckReport, form: str, everything: bool) -> Iterator[str]:
    from inspector.lint.kinds import checked_kinds
    from inspector.render.checked import check_json, check_lines, end_lines, headline
    from inspector.render.junit import as_junit
    from inspector.render.sarif import as_sarif
    from inspector.render.workflow import annotation_lines, step_summary

    if form == Format.JSON:
        yield check_json(report)
    elif form == Format.SARIF:
        yield as_sarif(report, checked_kinds())
    elif form == Format.JUNIT:
        yield as_junit(report)
    elif form == _MARKDOWN:
        yield step_summary(report, headline(report))
    elif form == Format.GITHUB:
        yield from (f"{line}\n" for line in (*annotation_lines(report), *end_lines(report)))
    else:
        yield from (f"{line}\n" for line in check_lines(report, everything=everything))


def _append(summary: str, text: str) -> None:
    """To what the steps before said. The runner names the file, and made it."""
    if kind_of_path(summary) is not PathKind.FILE:
        raise ExportError(f"{_SUMMARY} names no file: {shown_name(summary)}.")
    try:
        with Path(summary).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise ExportError(f"{shown_name(summary)} cannot be written: {reason_of(error)}.") from error
