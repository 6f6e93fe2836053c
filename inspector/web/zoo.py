"""The Zoo page: all files of the operator's audits, searched, and held against each other by digest."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from inspector.catalogue.engine import is_there, missing
from inspector.catalogue.listing import Asked, Order, Question
from inspector.catalogue.open import Answer
from inspector.catalogue.parts import PartFolder, catalogue_of
from inspector.errors import RefusedContent
from inspector.findings import Finding
from inspector.jobs.job import Job
from inspector.path_text import path_of_text
from inspector.reports_from_json import KEPT, report_from
from inspector.units import counted, human_bytes
from inspector.web import jobs, session, shelf
from inspector.web.second_file import beside
from inspector.web.server_paths import audits_store, resolve_folder, server_root, store_path
from inspector.web.text import plain, visible
from inspector.web.trees import table_height

# A longer table is slow in a browser, and nobody reads it: a search narrows it.
MOST_ROWS = 500
_KEPT_SECONDS = 5
_WORDS = {"error": "Error", "warning": "Warning", "notice": "Note"}


def folder() -> PartFolder | None:
    """The catalogue of the operator's store; None without one that answers. Raises ReadError, MissingLibrary."""
    store = audits_store()
    found = catalogue_of(store) if store is not None else None
    if found is None or not _state(str(found.root)):
        return None
    if not is_there():
        raise missing()
    return found


def ask(found: PartFolder, asked: Asked) -> Answer:
    """By a worker; what was asked before of the same catalogue is there at once. Raises as the job does."""
    answer: Answer = jobs.ask(Job(kind="zoo", arguments=(found.root, _state(str(found.root)), asked)))
    return answer


@st.cache_data(ttl=_KEPT_SECONDS, max_entries=4, show_spinner=False)
def _state(root: str) -> str:
    """What changes with the catalogue, "" where there is none."""
    parts = PartFolder(Path(root)).parts()
    told = [*parts.ids, parts.index.id if parts.index is not None else "", *parts.damaged]
    return hashlib.sha256(" ".join(told).encode()).hexdigest() if parts.rows else ""


def summary(found: PartFolder) -> str:
    """How many of what, in one or two sentences."""
    ((files, checkpoints, errors, warnings, digested, nbytes, audited),) = ask(
        found, Asked(question=Question.SUMMARY)
    ).rows
    says = f"{counted(files, 'file')} of {human_bytes(nbytes or 0)}, {counted(checkpoints, 'checkpoint')}"
    bad = [
        *([counted(errors, "file has an error", "files have an error")] if errors else []),
        *([counted(warnings, "file has a warning", "files have a warning")] if warnings else []),
    ]
    says += f"; {', '.join(bad)}." if bad else "; no error and no warning."
    if digested < checkpoints:
        says += f" {counted(digested, 'checkpoint is', 'checkpoints are')} known by the numbers of all tensors."
    return f"{says} Last audited {audited:%Y-%m-%d %H:%M} UTC." if audited is not None else says


def choose_file(found: PartFolder) -> dict[str, Any] | None:
    """The search box and the table of files; the one whose row is chosen."""
    box, sorting = st.columns([4, 1.4], vertical_alignment="bottom")
    text = box.text_input(
        "Search", key="zoo-text", placeholder="part of a path, a network, a tensor's name, a sha256", max_chars=200
    )
    order = (
        sorting.selectbox("First", list(Order), key="zoo-order", format_func=lambda one: _ORDER_WORDS[one])
        or Order.WORST
    )
    answer = ask(found, Asked(question=Question.FILES, text=text.strip(), order=order, most=MOST_ROWS))
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    if not rows:
        st.caption("No file is like that.")
        return None
    if answer.more:
        st.caption(f"The first {len(rows):,} of {rows[0]['in_all']:,}: search for the others.")
    above = _folder_of([row["path"] for row in rows])
    if above:
        st.caption(f"Files below {plain(above)}.")
    event = st.dataframe(
        _frame(rows, above),
        hide_index=True,
        key="zoo-files",
        height=_height(rows),
        on_select="rerun",
        selection_mode="single-row",
        placeholder="",
        column_config={
            "Worst": st.column_config.TextColumn(width=70),
            "File": st.column_config.TextColumn(width="medium"),
            "What it is": st.column_config.TextColumn(width=220),
            "Parameters": st.column_config.NumberColumn(width=110, format="localized"),
            "Bytes": st.column_config.NumberColumn(width=120, format="localized"),
            "Worst finding": st.column_config.TextColumn(width="large"),
        },
        alt="What each audited file is and its worst finding",
    )
    chosen = event.selection.rows
    return rows[chosen[0]] if chosen and chosen[0] < len(rows) else None


_ORDER_WORDS = {
    Order.WORST: "the worst",
    Order.PATH: "by path",
    Order.LARGEST: "the largest",
    Order.NEWEST: "audited last",
}


def findings_of(found: PartFolder, file: int) -> tuple[Finding, ...]:
    """As the audit said them."""
    rows = ask(found, Asked(question=Question.FINDINGS, file=file)).rows
    return tuple(
        report_from(Finding, {"id": name, "severity": severity, "says": says, "subjects": list(subjects or ())}, KEPT)
        for name, severity, says, subjects in rows
    )


def what_it_is(row: dict[str, Any]) -> str:
    """The network, else the format and what is in it."""
    if row["kind"] != "checkpoint":
        return "could not be read" if row["kind"] == "unreadable" else "no checkpoint"
    if row["architecture"]:
        classes = row["classes"]
        return str(row["architecture"]) + (f", {classes:,} classes" if classes is not None else "")
    return f"{row['format']}, {counted(row['tensors'], 'tensor')}" if row["tensors"] else f"{row['format']}, no tensors"


def choose_row(answer: Answer, columns: dict[str, str], key: str, says: str) -> dict[str, Any] | None:
    """A table of some columns of an answer under words of ours; the chosen row."""
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    cells = {word: [_cell(row[name]) for row in rows] for name, word in columns.items()}
    numbers = [word for word, column in cells.items() if all(isinstance(cell, int) for cell in column)]
    event = st.dataframe(
        pd.DataFrame(cells),
        hide_index=True,
        key=key,
        height=_height(rows),
        on_select="rerun",
        selection_mode="single-row",
        placeholder="",
        column_config={word: st.column_config.NumberColumn(format="localized") for word in numbers},
        alt=says,
    )
    if answer.more:
        st.caption(f"The first {len(rows):,} rows; the command line has all of them.")
    chosen = event.selection.rows
    return rows[chosen[0]] if chosen and chosen[0] < len(rows) else None


def inside_root(place: str) -> str | None:
    """A file's path below the folder that this server opens, None for one elsewhere. It may be gone."""
    root = server_root()
    if root is None or "://" in place:
        return None
    place = path_of_text(place)
    try:
        return Path(place).relative_to(root).as_posix()
    except ValueError:
        pass
    try:
        return Path(place).resolve().relative_to(root).as_posix()
    except (OSError, RuntimeError, ValueError):
        return None


def open_file(relative: str) -> None:
    """Go on to what it is. Does not come back. Raises RefusedContent where it is gone or leads out of the root."""
    if _is_folder(relative):
        shelf.show_folder(relative)
    shelf.show(store_path(relative))


def compare(relative: str, other: str) -> None:
    """Go on to what changed between the two. Does not come back. Raises as `open_file`."""
    second = beside(store_path(other))
    session.take(store_path(relative))
    st.switch_page("pages/compare.py", query_params=second)


def _is_folder(relative: str) -> bool:
    try:
        resolve_folder(relative)
    except RefusedContent:
        return False
    return True


def _folder_of(paths: Sequence[str]) -> str:
    """The folder in which all of them lie, with its slash; "" for none. A path's end is what tells it apart."""
    if len(paths) < 2:
        return ""
    # What lies between the first and the last by name begins as both do.
    first, last = (path.rpartition("/")[0].split("/") for path in (min(paths), max(paths)))
    shared = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))]
    return "/".join(shared) + "/" if any(shared) else ""


def _frame(rows: Sequence[dict[str, Any]], above: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Worst": [_WORDS.get(row["severity"] or "", "") for row in rows],
            "File": [visible(row["path"][len(above) :]) for row in rows],
            "What it is": [visible(what_it_is(row)) for row in rows],
            "Parameters": pd.array([row["parameters"] or None for row in rows], dtype="Int64"),
            "Bytes": pd.array([row["nbytes"] or None for row in rows], dtype="Int64"),
            "Worst finding": [visible(row["says"]) if row["severity"] in _WORDS else "" for row in rows],
        }
    )


def _cell(value: object) -> object:
    if isinstance(value, int):
        return value
    if isinstance(value, list):
        shape = all(isinstance(one, int) for one in value)
        return " x ".join(map(str, value)) if shape else visible(", ".join(map(str, value)))
    return visible(str(value)) if value is not None else ""


def _height(rows: Sequence[object]) -> int:
    return table_height(len(rows), 560)
