"""The table of many files: a row each, worst first, and what one chosen row says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from inspector.findings import Finding, Severity
from inspector.render.spreadsheet import csv_text
from inspector.survey.copies import SAME_BYTES
from inspector.survey.kinds import NO_CHECKPOINT, POINTER_FILE
from inspector.survey.report import RowKind, Survey, SurveyRow
from inspector.units import counted
from inspector.web.text import visible
from inspector.web.trees import table_height

_WORDS = {Severity.ERROR: "Error", Severity.WARNING: "Warning", Severity.NOTICE: "Note", Severity.INFO: "", None: ""}
_A = {Severity.ERROR: "an error", Severity.WARNING: "a warning"}
_KINDS = {
    "Checkpoints": RowKind.CHECKPOINT,
    "Unreadable": RowKind.UNREADABLE,
    "Other": RowKind.OTHER,
}
_ALL, _TROUBLE = "All", "Errors, warnings"
NAME = "File"


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
    return tuple(sorted(found, key=lambda one: (-_rank(one.row), one.path)))


def _copy_of(row: SurveyRow, called: Mapping[str, str]) -> str:
    others = next((finding.subjects for finding in row.findings if finding.id == SAME_BYTES.id), ())
    if not others:
        return ""
    more = f" and {counted(len(others) - 1, 'other', 'others')}" if len(others) > 1 else ""
    return f"{called.get(others[0], others[0])}{more}"


def _rank(row: SurveyRow) -> int:
    worst = row.worst.rank if row.worst is not None and row.worst is not Severity.INFO else -1
    # Of the quiet ones the checkpoints come first.
    return 2 * worst + (row.kind is RowKind.CHECKPOINT)


def of_archive(survey: Survey) -> tuple[Finding, ...]:
    """What is wrong with the archive itself, beside what is in it. That it is no checkpoint is nothing wrong."""
    if survey.archive is None:
        return ()
    own = tuple(f for f in survey.archive.findings if f.id != NO_CHECKPOINT.id or not survey.rows)
    return own or (() if survey.rows else (NO_CHECKPOINT.found(survey.archive.says or "There is no file in it."),))


def answer(rows: Sequence[FileRow], archive: Sequence[Finding] = ()) -> str:
    """How many of what, and the worst of all, in one or two sentences. archive: as `of_archive`."""
    pointers = sum(one.row.finding == POINTER_FILE.id for one in rows)
    unread = sum(one.row.kind is RowKind.UNREADABLE for one in rows) - pointers
    others = sum(one.row.kind is RowKind.OTHER for one in rows)
    said = [
        counted(sum(one.row.kind is RowKind.CHECKPOINT for one in rows), "checkpoint"),
        *([f'{counted(pointers, "Git LFS pointer")} ("git lfs pull" fetches the weights)'] if pointers else []),
        *([f"{unread:,} that could not be read"] if unread else []),
        *([counted(others, "other file")] if others else []),
    ]
    copies = sum(any(f.id == SAME_BYTES.id for f in one.row.findings) for one in rows)
    same = f" {copies:,} files are byte for byte the same as another." if copies else ""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The row that was clicked. opens: its name was, which asks for the file itself."""

    row: FileRow
    opens: bool = False


def choose(rows: Sequence[FileRow], slot: str) -> Choice | None:
    """The table, filtered; the one whose row is chosen. slot: of the session, where the choice outlives the page."""
    present = [_ALL]
    if any(_rank(one.row) >= 2 * Severity.WARNING.rank for one in rows):
        present.append(_TROUBLE)
    present += [word for word, kind in _KINDS.items() if any(one.row.kind is kind for one in rows)]
    left, right = st.columns([4, 2], vertical_alignment="bottom")
    shown = left.segmented_control(
        "Show", present, default=_ALL, required=True, key="files-show", persist_state="session"
    )
    text = right.text_input("Path contains", key="files-text", placeholder="a part of it", persist_state="session")
    kept = [one for one in rows if _is_shown(one, str(shown)) and text.casefold() in one.path.casefold()]
    if not kept:
        st.caption("No file is like that.")
        return None
    before = st.session_state.get(slot)
    at = next((n for n, one in enumerate(kept) if one.path == before), None)
    # A chosen row is a position: among other rows it would be another file.
    key = f"files-table-{shown}-{text}"
    # One column more must not push the findings out of sight.
    copies = any(one.copy_of for one in kept)
    event = st.dataframe(
        frame_of(kept),
        hide_index=True,
        key=key,
        height=table_height(len(kept), 560),
        on_select="rerun",
        selection_mode=("single-row", "single-cell"),
        selection_default={"selection": {"rows": [at] if at is not None else []}},
        placeholder="",
        column_config={
            "Worst": st.column_config.TextColumn(width=70),
            NAME: st.column_config.TextColumn(
                width=150 if copies else "medium", help="A click on a name opens the file."
            ),
            "What it is": st.column_config.TextColumn(width=200),
            "Parameters": st.column_config.NumberColumn(width=92, format="localized"),
            "Bytes": st.column_config.NumberColumn(width=98, format="localized"),
            "Same as": st.column_config.TextColumn(width=95, help="The file that is the same, byte for byte."),
            "Worst finding": st.column_config.TextColumn(width="large"),
        },
        alt="What each file is and its worst finding",
    )
    place, column = _clicked(key, event.selection.rows, event.selection.cells, at)
    if place is None or place >= len(kept):
        st.session_state.pop(slot, None)
        return None
    st.session_state[slot] = kept[place].path
    return Choice(row=kept[place], opens=column == NAME)


def _clicked(
    key: str, rows: Sequence[int], cells: Sequence[tuple[int, str]], held: int | None
) -> tuple[int | None, str]:
    """The row of the last click, and its column where it was on a cell just now. Streamlit keeps a chosen row and a
    chosen cell beside each other. held: the row that was chosen before."""
    slot = f"{key}/before"
    now: tuple[list[int], list[tuple[int, str]]] = (list(rows), [(place, name) for place, name in cells])
    before, st.session_state[slot] = st.session_state.get(slot, ([], [])), now
    if now == before:
        return held, ""
    if now[1] and now[1] != before[1]:
        return now[1][0]
    left = now[0] or [place for place, _ in now[1]]
    return (left[0] if left else None), ""


def _is_shown(one: FileRow, shown: str) -> bool:
    if shown == _TROUBLE:
        return _rank(one.row) >= 2 * Severity.WARNING.rank
    return shown == _ALL or one.row.kind is _KINDS[shown]


def frame_of(rows: Sequence[FileRow]) -> pd.DataFrame:
    """The table's columns."""
    return pd.DataFrame(
        {
            "Worst": [_WORDS[one.row.worst] for one in rows],
            NAME: [visible(one.path) for one in rows],
            "What it is": [visible(what_it_is(one.row)) for one in rows],
            # Numbers, so that a click on the head sorts by size and not by spelling.
            "Parameters": pd.array([one.row.parameters or None for one in rows], dtype="Int64"),
            "Bytes": pd.array([one.row.nbytes or None for one in rows], dtype="Int64"),
            # A copy with an error has that as its worst finding.
            **({"Same as": [visible(one.copy_of) for one in rows]} if any(one.copy_of for one in rows) else {}),
            "Worst finding": [visible(one.row.says) if _WORDS[one.row.worst] else "" for one in rows],
        }
    )


def what_it_is(row: SurveyRow) -> str:
    """The network, else the format and what is in it."""
    if row.finding == POINTER_FILE.id:
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
