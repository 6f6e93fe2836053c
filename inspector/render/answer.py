"""The answer to a question of a catalogue: a table for people, JSON and CSV for programs."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from inspector.render.spreadsheet import Cell, csv_text
from inspector.render.text import safe, table
from inspector.render.visible import one_line
from inspector.units import counted, shorten_middle

# A longer text is shortened in its middle where people read; JSON and CSV have it whole.
_MOST_SHOWN = 160
_LISTED = 6


def answer_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, more: bool) -> RenderableType:
    """A line for each row, numbers at the right."""
    numeric = [
        place
        for place in range(len(columns))
        if rows and all(isinstance(row[place], int | float | None) and not isinstance(row[place], bool) for row in rows)
    ]
    made = table(*(safe(column) for column in columns), right=numeric)
    for row in rows:
        made.add_row(*(safe(_shown(value)) for value in row))
    says = counted(len(rows), "row") if rows else "No row."
    if more:
        says += " and more: --limit 0 shows all, --output writes them to a file"
    return Group(made, Text(says, style="dim")) if rows else Text(says, style="dim")


def json_pieces(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """A list of objects, piece by piece."""
    mark = "[\n"
    for row in rows:
        told = {column: _plain(value) for column, value in zip(columns, row, strict=True)}
        yield mark + json.dumps(told, ensure_ascii=False, allow_nan=False)
        mark = ",\n"
    yield "[]\n" if mark == "[\n" else "\n]\n"


def csv_pieces(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """A heading line and one for each row."""
    yield csv_text(columns, ())
    for row in rows:
        (_, line) = csv_text((), [[_cell(value) for value in row]]).split("\n", 1)
        yield line


def text_pieces(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """The table for a file: tabs between the columns, a line for each row."""
    yield "\t".join(one_line(column) for column in columns) + "\n"
    for row in rows:
        yield "\t".join(one_line("" if value is None else _text(value)) for value in row) + "\n"


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple) and len(value) > _LISTED:
        return f"{_text(value[:_LISTED])} and {len(value) - _LISTED:,} more"
    return shorten_middle(_text(value), _MOST_SHOWN)


def _cell(value: object) -> Cell:
    return value if value is None or (isinstance(value, int | float) and not isinstance(value, bool)) else _text(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(_text(one) for one in value) if not _is_shape(value) else f"[{', '.join(map(str, value))}]"
    if isinstance(value, Mapping):
        return ", ".join(f"{_text(key)}: {_text(one)}" for key, one in value.items())
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    return str(value)


def _is_shape(value: Sequence[object]) -> bool:
    return all(isinstance(one, int) for one in value)


def _plain(value: object) -> Any:
    """As JSON says it: times and whatever else SQL knows as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {_text(key): _plain(one) for key, one in value.items()}
    return _text(value)
