"""The numbers that a figure draws, as a table: for who cannot see it, and to take along.

A trace says in its `meta` which columns it has (`in_table`) or that its cells are a table of their own (`in_matrix`).
One that says nothing has what its axes are called. Names are as the figure has them, long ones shortened.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from inspector.render.spreadsheet import Cell, csv_text

#: (title, where it lies in the trace): "y", or "customdata.1" for the second of each point's.
Column = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureTable:
    """columns: each title once. rows: None where a line has no such number. says: what the cells are, "" if plain."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    says: str = ""

    def as_csv(self) -> str:
        return csv_text(self.columns, self.rows)


def in_table(*columns: Column, order: str = "") -> dict[str, Any]:
    """A trace's meta: a row for each of its points; no columns for what is only drawn. order: rows are sorted by it."""
    return {"columns": [list(column) for column in columns], "order": order}


def in_matrix(*names: Column, cells: str = "z", heads: str = "x", says: str = "") -> dict[str, Any]:
    """A heat map's meta: a row of cells for each of its own, led by `names`; heads: where the columns' titles lie."""
    return {"names": [list(name) for name in names], "cells": cells, "heads": heads, "says": says}


def table_of(figure: Any) -> FigureTable:
    """What a Plotly figure draws. Raises nothing: a trace without numbers has no rows."""
    matrices = [trace for trace in figure.data if trace.type == "heatmap"]
    return _matrix(matrices[0]) if matrices else _points(figure)


def _points(figure: Any) -> FigureTable:
    parts: list[tuple[list[str], list[tuple[Any, tuple[Cell, ...]]]]] = []
    for trace in figure.data:
        meta = trace.meta if isinstance(trace.meta, dict) else _by_axes(figure)
        columns, order = meta["columns"], meta.get("order")
        cells = [_values(trace, where) for _, where in columns]
        # A name alone is as long as the others.
        rows = list(zip(*cells, strict=False)) if columns else []
        places = _values(trace, order) if order else count()
        parts.append(([title for title, _ in columns], list(zip(places, rows, strict=False))))
    titles = tuple(dict.fromkeys(title for heads, _ in parts for title in heads))
    found = [
        (place, tuple(dict(zip(heads, row, strict=True)).get(title) for title in titles))
        for heads, rows in parts
        for place, row in rows
    ]
    if any(isinstance(trace.meta, dict) and trace.meta.get("order") for trace in figure.data):
        found.sort(key=lambda each: each[0])
    return FigureTable(columns=titles, rows=tuple(row for _, row in found))


def _by_axes(figure: Any) -> dict[str, Any]:
    x, y = figure.layout.xaxis.title.text or "x", figure.layout.yaxis.title.text or "y"
    named = [("line", "name")] if sum(bool(trace.name) for trace in figure.data) > 1 else []
    return in_table(*named, (x, "x"), (y, "y"))


def _matrix(trace: Any) -> FigureTable:
    meta = trace.meta if isinstance(trace.meta, dict) else in_matrix(("", "y"))
    cells = [[_plain(cell) for cell in _parts(row, meta["cells"])] for row in _held(trace, meta["cells"])]
    across = len(cells[0]) if cells else 0
    # What stands beside each cell in customdata is the same all along a row, or all down a column.
    heads = _parts(_held(trace, meta["heads"])[0], meta["heads"]) if "." in meta["heads"] else _held(trace, "x")
    titles = [_title(head) for head in heads] or [str(n) for n in range(across)]
    names = [
        [_plain(_parts(row, where)[0]) for row in _held(trace, where)]
        if "." in where
        else _own(trace, where, len(cells))
        for _, where in meta["names"]
    ]
    rows = tuple((*(name[n] for name in names), *row) for n, row in enumerate(cells))
    return FigureTable(
        columns=_each_once([*(title for title, _ in meta["names"]), *titles]), rows=rows, says=meta.get("says") or ""
    )


def _own(trace: Any, where: str, number: int) -> Sequence[Cell]:
    """The names of a heat map's rows; their numbers where it has none."""
    return [_plain(name) for name in _held(trace, where)] or list(range(number))


def _values(trace: Any, where: str) -> Iterable[Cell]:
    if where == "name":
        return _again(_plain(trace.name or ""))
    return [_plain(cell) for cell in _parts(_held(trace, where), where)]


def _again(value: Cell) -> Iterable[Cell]:
    while True:
        yield value


def _held(trace: Any, where: str) -> Sequence[Any]:
    held = trace[where.partition(".")[0]]
    return () if held is None else held


def _parts(held: Sequence[Any], where: str) -> Sequence[Any]:
    """Of each point the one that is meant, or the point itself."""
    nth = where.partition(".")[2]
    return [cell[int(nth)] for cell in held] if nth else held


def _plain(cell: Any) -> Cell:
    """Plotly's text is markup; NumPy's numbers are Python's."""
    if isinstance(cell, str):
        return html.unescape(cell).strip()
    found: Cell = cell.item() if hasattr(cell, "item") else cell
    return found


def _title(head: Any) -> str:
    plain = _plain(head)
    return f"{plain:.3g}" if isinstance(plain, float) else str(plain)


def _each_once(titles: Iterable[str]) -> tuple[str, ...]:
    """Two checkpoints may be called alike."""
    found: dict[str, None] = {}
    for title in titles:
        number, own = 2, title
        while own in found:
            own, number = f"{title} ({number})", number + 1
        found[own] = None
    return tuple(found)
