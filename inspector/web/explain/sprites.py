"""Pictures in a page's own components: the table of small maps, and two pictures with a line between them to drag."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from PIL import Image

_STATIC = Path(__file__).resolve().parents[1] / "static"


def _component(name: str) -> Any:
    html, css, js = ((_STATIC / f"{name}.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    return st.components.v2.component(f"inspector_{name}", html=html, css=css, js=js)


_grid, _reveal = _component("grid"), _component("reveal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A row's or a column's heading. id: what the page hears. note: a second line. says: on hover."""

    id: str
    title: str
    note: str = ""
    says: str = ""


def picture_table(
    rows: Sequence[Head],
    columns: Sequence[Head],
    cells: Sequence[Sequence[Image.Image | None]],
    *,
    chosen: tuple[str, str] | None,
    key: str,
    on_choice: Callable[[str, str], None],
    called: Callable[[Head, Head], str],
    notes: Mapping[tuple[int, int], str] | None = None,
) -> None:
    """Small pictures of one size as buttons; None: there is none. on_choice: (row id, column id), before the run.

    called: what the cell of a row and column is. notes: what is wrong with it; it gets a mark.
    """
    width, height = next((cell.size for line in cells for cell in line if cell is not None), (1, 1))
    sprite = Image.new("RGB", (width * len(columns), height * len(rows)))
    for y, line in enumerate(cells):
        for x, cell in enumerate(line):
            if cell is not None:
                sprite.paste(cell, (x * width, y * height))

    def tell() -> None:
        told = getattr(st.session_state.get(key), "chosen", None)
        if not isinstance(told, dict):
            return
        row, column = str(told.get("row")), str(told.get("column"))
        if any(r.id == row for r in rows) and any(c.id == column for c in columns):
            on_choice(row, column)

    row_ids, column_ids = [r.id for r in rows], [c.id for c in columns]
    _grid(
        key=key,
        data={
            "rows": [{"id": r.id, "title": r.title, "note": r.note, "says": r.says} for r in rows],
            "columns": [{"id": c.id, "title": c.title, "says": c.says} for c in columns],
            "empty": [f"{y},{x}" for y, line in enumerate(cells) for x, cell in enumerate(line) if cell is None],
            "notes": {f"{y},{x}": says for (y, x), says in (notes or {}).items()},
            "called": [[called(row, column) for column in columns] for row in rows],
            "sprite": data_address(sprite, quality=92),
            "width": width,
            "height": height,
            "row": row_ids.index(chosen[0]) if chosen and chosen[0] in row_ids else -1,
            "column": column_ids.index(chosen[1]) if chosen and chosen[1] in column_ids else -1,
        },
        on_chosen_change=tell,
    )


def reveal(under: NDArray[np.uint8], over: NDArray[np.uint8], *, key: str) -> None:
    """Two pictures (H, W, 3) of one size; the line between them is dragged. For looking: downloads keep every pixel."""
    _reveal(
        key=key,
        data={
            "under": data_address(Image.fromarray(under), quality=95),
            "over": data_address(Image.fromarray(over), quality=95),
        },
    )


def data_address(picture: Image.Image, *, quality: int) -> str:
    """The picture as a JPEG that stands in the page itself."""
    buffer = io.BytesIO()
    # Full colour resolution: hard edges between strong colours would smear.
    picture.save(buffer, format="JPEG", quality=quality, subsampling=0)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
