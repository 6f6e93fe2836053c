"""What the page asks beside one file: a folder of many, an error that somebody pasted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.browser.documents import survey_of
from inspector.browser.pieces import own_words
from inspector.checkpoint.source import PathSource
from inspector.findings import Severity
from inspector.progress import Progress, silent
from inspector.render.html_text import escaped
from inspector.render.page_report.sections import card
from inspector.render.page_report.words import WORDS, mono, table
from inspector.render.visible import one_line, visible
from inspector.units import human_bytes, human_count

if TYPE_CHECKING:
    from inspector.browser.views import Opened
    from inspector.error_messages.report import PastedError
    from inspector.survey.report import SurveyRow


def scan(
    folder: str, progress: Progress = silent, *, name: str = "", deep: Collection[str] = (), spent: float = 0
) -> dict[str, Any]:
    """A row per file, worst first. name, deep: as `survey_of` takes them. spent: seconds of tries before this one."""
    from inspector.render.survey import summary_line

    survey = survey_of(folder, progress, name=name, deep=deep)
    survey = replace(survey, seconds=survey.seconds + spent)
    rows = sorted(survey.rows, key=lambda row: (-_rank(row), row.path))
    return {
        "says": own_words(summary_line(survey)),
        "rows": [_row(row) for row in rows],
        "skipped": [own_words(line) for line in survey.skipped],
    }


def archive(path: str, progress: Progress = silent) -> dict[str, Any] | None:
    """The same of an archive of files that are not one checkpoint together, as the app's Files page has it; None for
    any other file."""
    from inspector.limits import DEFAULT_LIMITS
    from inspector.readers.inside import holds_files
    from inspector.render.files_words import answer, csv_of, of_archive, rows_of
    from inspector.survey.copies import in_archive, say_copies
    from inspector.survey.members import survey_source
    from inspector.survey.networks import network_of
    from inspector.survey.report import Survey
    from inspector.survey.row import Reading

    if not Path(path).is_file():
        return None
    source = PathSource(path)
    try:
        if not holds_files(source, DEFAULT_LIMITS):
            return None
        own, *members = survey_source(source, source.name, Reading(what=network_of, every=True), progress=progress)
        told = say_copies(members, in_archive(source, DEFAULT_LIMITS))
    finally:
        source.close()
    survey = Survey(name=source.name, rows=told, skipped=(), seconds=0, archive=own)
    rows, wrong = rows_of(survey, source.name), of_archive(survey)
    return {
        "archive": visible(source.name),
        "says": answer(rows, wrong),
        "findings": "".join(own_words(card(finding)) for finding in wrong),
        "rows": [{**_row(one.row), "shown": one_line(one.path)} for one in rows],
        "skipped": [],
        "csv": csv_of(rows),
    }


def _rank(row: SurveyRow) -> int:
    return row.worst.rank if row.worst is not None else -1


def _row(row: SurveyRow) -> dict[str, Any]:
    from inspector.render.files_words import what_it_is
    from inspector.survey.report import RowKind

    read = row.kind is RowKind.CHECKPOINT
    quiet = row.worst is None or row.worst is Severity.INFO
    return {
        "path": row.path,
        "shown": one_line(row.path),
        "tone": row.worst.value if row.worst is not None else "unknown",
        "word": "" if quiet or row.worst is None else WORDS[row.worst],
        "what": what_it_is(row),
        "size": human_bytes(row.nbytes),
        "nbytes": row.nbytes,
        "tensors": f"{row.tensors:,}" if read else "",
        "parameters": human_count(row.parameters) if read else "",
        "says": "" if quiet else own_words(row.says),
        "opens": read and not row.member,
    }


def explain_error(text: str, opened: Opened | None) -> str:
    """What a pasted error, or pasted loading code, means; with the file where one is open."""
    from inspector.error_messages.explain import explain_error as ask

    report = ask(text, checkpoint=opened.checkpoint if opened is not None else None)
    html = f"<p><b>{escaped(own_words(report.says))}</b></p>"
    html += "".join(_error(error, alone=len(report.errors) == 1) for error in report.errors)
    if report.file:
        html += "<h3>This file</h3>" + "".join(f"<p>{escaped(own_words(line))}</p>" for line in report.file)
    html += f"<pre>{escaped(report.code)}</pre>" if report.code else ""
    return html + "".join(f'<p class="soft">Not read: {escaped(what)}</p>' for what in report.skipped)


def _error(error: PastedError, *, alone: bool) -> str:
    html = "" if alone else f"<h3>{escaped(error.says)}</h3>"
    html += f"<p>{mono(error.quote, 120)}</p>"
    for word, cause in zip(("Either", "Or"), error.causes, strict=False):
        html += f"<p><b>{word}</b> {escaped(cause.says)} Sign: {escaped(cause.sign)}.</p>"
    html += f"<p>{escaped(error.why)}</p><ol>"
    html += "".join(f"<li>{escaped(own_words(step))}</li>" for step in error.steps) + "</ol>"
    if error.keys is not None and error.keys.renamings:
        rows = [
            (
                escaped(use.says), f"{use.count:,}",
                "<br>".join(f"{mono(old, 44)} → {mono(new, 44)}" for old, new in use.examples),
            )
            for use in error.keys.renamings
        ]  # fmt: skip
        html += table(("Rule", "Keys", "For example"), rows, numeric=(1,))
    return html + (f"<pre>{escaped(error.patch)}</pre>" if error.patch else "")
