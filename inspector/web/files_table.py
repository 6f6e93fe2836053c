"""The table of many files: a row each, worst first, and what one chosen row says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from inspector.findings import Severity
from inspector.render.files_words import FileRow, rank, what_it_is
from inspector.survey.report import RowKind
from inspector.web.text import visible
from inspector.web.trees import table_height

_WORDS = {Severity.ERROR: "Error", Severity.WARNING: "Warning", Severity.NOTICE: "Note", Severity.INFO: "", None: ""}
_KINDS = {
    "Checkpoints": RowKind.CHECKPOINT,
    "Unreadable": RowKind.UNREADABLE,
    "Other": RowKind.OTHER,
}
_ALL, _TROUBLE = "All", "Errors, warnings"
NAME = "File"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The row that was clicked. opens: its name was, which asks for the file itself."""

    row: FileRow
    opens: bool = False


def choose(rows: Sequence[FileRow], slot: str) -> Choice | None:
    """The table, filtered; the one whose row is chosen. slot: of the session, where the choice outlives the page."""
    present = [_ALL]
    if any(rank(one.row) >= 2 * Severity.WARNING.rank for one in rows):
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
        return rank(one.row) >= 2 * Severity.WARNING.rank
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
