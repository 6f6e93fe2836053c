"""The table of tensors: filtering and the frame behind it. No drawing here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import pandas as pd
import streamlit as st

from inspector.checkpoint.types import TensorInfo
from inspector.render.spreadsheet import csv_text
from inspector.units import human_shape
from inspector.web.text import visible

_MOST_MODULES = 1_000
COLUMNS: dict[str, Any] = {
    # So narrow that on a telephone the next column is seen to begin.
    "Tensor": st.column_config.TextColumn(width=280),
    "Elements": st.column_config.NumberColumn(format="localized"),
    # Exact: Streamlit's own format for bytes has other units than the page.
    "Bytes": st.column_config.NumberColumn(format="localized"),
}


def modules(tensors: Sequence[TensorInfo]) -> list[str]:
    """The module paths above tensors, in file order; of very many the outermost levels, since the filter finds others
    and a browser takes seconds for a list of tens of thousands."""
    found: dict[str, int] = {}
    for tensor in tensors:
        pieces = tensor.name.split(".")[:-1]
        for n in range(1, len(pieces) + 1):
            found.setdefault(".".join(pieces[:n]), n)
    if len(found) <= _MOST_MODULES:
        return list(found)
    levels = sorted(Counter(found.values()).items())
    totals = dict(zip((level for level, _ in levels), accumulate(count for _, count in levels), strict=True))
    return [path for path, level in found.items() if totals[level] <= _MOST_MODULES]


def filtered(tensors: Sequence[TensorInfo], words: str, module: str) -> tuple[TensorInfo, ...]:
    """Those below the module in which every word is part of the name, the shape ("64x3") or the type."""
    wanted = words.lower().split()
    under = f"{module}." if module else ""
    return tuple(
        t
        for t in tensors
        if t.name.startswith(under)
        and all(word in f"{t.name} {human_shape(t.shape)} {t.dtype}".lower() for word in wanted)
    )


def frame(tensors: Sequence[TensorInfo]) -> pd.DataFrame:
    """One row per tensor."""
    made = pd.DataFrame(
        {
            "Tensor": [visible(t.name) for t in tensors],
            "Shape": [human_shape(t.shape) for t in tensors],
            "Type": [t.dtype for t in tensors],
            "Elements": [t.numel for t in tensors],
            "Bytes": [t.nbytes for t in tensors],
        }
    )
    if any(t.note for t in tensors):
        made["Stored as"] = [visible(t.note) for t in tensors]
    return made


def table_csv(tensors: Sequence[TensorInfo]) -> str:
    """The same rows to take along."""
    made = frame(tensors)
    return csv_text(list(made.columns), made.itertuples(index=False, name=None))
