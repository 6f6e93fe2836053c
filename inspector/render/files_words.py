"""The table of many files in words: a row each, worst first, and the answer over all of them. For the app's Files page
and the page without a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from inspector.findings import Finding, Severity
from inspector.render.spreadsheet import csv_text
from inspector.survey import copies, kinds
from inspector.survey.report import RowKind, Survey, SurveyRow
from inspector.units import counted

_A = {Severity.ERROR: "an error", Severity.WARNING: "a warning"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """One row of the survey as the table has it. path: below the folder or archive. copy_of: the row that is the same
    byte for byte, called like that, and how many more are."""

    path: str
    row: SurveyRow
    copy_of: str = ""


def rows_of(survey: Survey, inside: str) -> tuple[FileRow, ...]:
    """Worst first, then by path. inside: what stands before the paths of an archive's members."""
    found = [FileRow(path=row.path.removeprefix(f"{inside}/"), row=row) for row in survey.rows]
    # A folder that was dropped goes up under its own name, which the page's title says.
    heads = {one.path.partition("/")[0] for one in found}
    if inside and len(heads) == 1 and all("/" in one.path for one in found):
        found = [replace(one, path=one.path.partition("/")[2]) for one in found]
    called = {one.row.path: one.path for one in found}
    found = [replace(one, copy_of=_copy_of(one.row, called)) for one in found]
    return tuple(sorted(found, key=lambda one: (-rank(one.row), one.path)))


def _copy_of(row: SurveyRow, called: Mapping[str, str]) -> str:
    others = next((finding.subjects for finding in row.findings if finding.id == copies.SAME_BYTES.id), ())
    if not others:
        return ""
    more = f" and {counted(len(others) - 1, 'other', 'others')}" if len(others) > 1 else ""
    return f"{called.get(others[0], others[0])}{more}"


def rank(row: SurveyRow) -> int:
    """To sort by, the worst with the most."""
    worst = row.worst.rank if row.worst is not None and row.worst is not Severity.INFO else -1
    # Of the quiet ones the checkpoints come first.
    return 2 * worst + (row.kind is RowKind.CHECKPOINT)


def of_archive(survey: Survey) -> tuple[Finding, ...]:
    """What is wrong with the archive itself, beside what is in it. That it is no checkpoint is nothing wrong."""
    if survey.archive is None:
        return ()
    own = tuple(f for f in survey.archive.findings if f.id != kinds.NO_CHECKPOINT.id or not survey.rows)
    return own or (
        () if survey.rows else (kinds.NO_CHECKPOINT.found(survey.archive.says or "There is no file in it."),)
    )


def answer(rows: Sequence[FileRow], archive: Sequence[Finding] = ()) -> str:
    """How many of what, and the worst of all, in one or two sentences. archive: as `of_archive`."""
    pointers = sum(one.row.finding == kinds.POINTER_FILE.id for one in rows)
    unread = sum(one.row.kind is RowKind.UNREADABLE for one in rows) - pointers
    others = sum(one.row.kind is RowKind.OTHER for one in rows)
    said = [
        counted(sum(one.row.kind is RowKind.CHECKPOINT for one in rows), "checkpoint"),
        *([f'{counted(pointers, "Git LFS pointer")} ("git lfs pull" fetches the weights)'] if pointers else []),
        *([f"{unread:,} that could not be read"] if unread else []),
        *([counted(others, "other file")] if others else []),
    ]
    repeated = sum(any(f.id == copies.SAME_BYTES.id for f in one.row.findings) for one in rows)
    same = f" {repeated:,} files are byte for byte the same as another." if repeated else ""
    errors = sum(one.row.worst is Severity.ERROR for one in rows)
    warnings = sum(one.row.worst is Severity.WARNING for one in rows)
    own = max((finding.severity for finding in archive), key=lambda s: s.rank, default=Severity.INFO)
    if not errors and not warnings and own.rank < Severity.WARNING.rank:
        return f"{', '.join(said)}. No error and no warning by their headers.{same}"
    bad = [
        *([f"The archive itself has {_A[own]}"] if own in _A else []),
        *([counted(errors, "file has an error", "files have an error")] if errors else []),
        *([counted(warnings, "file has a warning", "files have a warning")] if warnings else []),
    ]
    return f"{', '.join(said)}. {', '.join(bad)}.{same}"


def what_it_is(row: SurveyRow) -> str:
    """The network, else the format and what is in it."""
    if row.finding == kinds.POINTER_FILE.id:
        return "Git LFS pointer, not the weights"
    if row.kind is RowKind.UNREADABLE:
        return "could not be read"
    if row.kind is RowKind.OTHER:
        return "no checkpoint"
    if row.what:
        return row.what
    return f"{row.format}, {counted(row.tensors, 'tensor')}" if row.tensors else f"{row.format}, no tensors"


def csv_of(rows: Sequence[FileRow]) -> str:
    """Every row with exact numbers, to take along."""
    columns = (
        "file",
        "worst",
        "finding",
        "says",
        "kind",
        "format",
        "what",
        "producer",
        "tensors",
        "parameters",
        "nbytes",
        "same_bytes_as",
    )
    return csv_text(
        columns,
        (
            (
                *(one.path, one.row.worst.value if one.row.worst else "", one.row.finding, one.row.says),
                *(one.row.kind.value, one.row.format, one.row.what, one.row.producer),
                *(one.row.tensors, one.row.parameters, one.row.nbytes, one.copy_of),
            )
            for one in rows
        ),
    )
