"""Charts of the pages, all drawn alike: in the page's colours, each as a table, too, and to be saved as SVG and PNG."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import streamlit as st

from inspector.render.figure_table import table_of
from inspector.units import counted
from inspector.web.text import plain
from inspector.web.trees import table_height

_STATIC = Path(__file__).parent / "static"
_files = st.components.v2.component(
    "inspector_figure_files",
    html=(_STATIC / "figure_files.html").read_text(encoding="utf-8"),
    css=(_STATIC / "figure_files.css").read_text(encoding="utf-8"),
    js=(_STATIC / "figure_files.js").read_text(encoding="utf-8"),
)
# Plotly saves a figure by a button of its bar, in the one format that it is told. Ours say which, and press it
# (static/figure_files.js); the bar is out of sight where it has no other use (style.css).
_ONLY_SAVES = {"modeBarButtons": [["toImage"]]}
_SCALE = 2  # of a PNG: sharp in print
# Rows that a table on the page has; the CSV has all.
_MOST_ROWS = 1_000
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


def draw_chart(
    figure: Any,
    *,
    key: str,
    alt: str,
    name: str = "",
    width: int | Literal["stretch"] = "stretch",
    height: int | Literal["content"] = "content",
    bar_without: tuple[str, ...] | None = None,
    selection_mode: tuple[str, ...] = (),
) -> Any:
    """A Plotly figure with three small buttons below it, and its numbers as a table once that is asked for.

    Returns what Streamlit tells of a selection, where one can be made.

    alt: what it shows, for who cannot see it. name: of the saved file, the key if left out. bar_without: buttons that
    Plotly's own bar does not have; None for no bar. selection_mode: how points are chosen, () for not.
    """
    place = _FOREIGN.sub("-", key)
    bar: dict[str, Any] = _ONLY_SAVES if bar_without is None else {"modeBarButtonsToRemove": list(bar_without)}
    saves = {"format": "svg", "filename": name or place, "scale": _SCALE}
    # The page's own ground: a figure that is saved without one takes light letters onto white paper.
    figure.update_layout(paper_bgcolor=None, plot_bgcolor=None)
    chosen: dict[str, Any] = {"on_select": "rerun", "selection_mode": selection_mode} if selection_mode else {}
    kind = "mi-chart" if bar_without is None else "mi-barred"
    with st.container(key=f"{kind}-{place}", width=width, gap="xxsmall"):
        event = st.plotly_chart(
            figure,
            key=key,
            height=height,
            config={"displayModeBar": True, "displaylogo": False, **bar, "toImageButtonOptions": saves},
            alt=alt,
            **chosen,
        )
        opened = f"{key}-as-table"

        def turn() -> None:
            st.session_state[opened] = not st.session_state.get(opened, False)

        shown = bool(st.session_state.get(opened))
        _files(key=f"{key}-files", data={"chart": place, "says": alt, "shown": shown}, on_table_change=turn)
        if shown:
            _show_table(figure, key=key, alt=alt, name=name or place)
    return event


def _show_table(figure: Any, *, key: str, alt: str, name: str) -> None:
    table = table_of(figure)
    if table.says:
        st.caption(plain(table.says))
    frame = pd.DataFrame(list(table.rows[:_MOST_ROWS]), columns=list(table.columns))
    st.dataframe(
        frame, hide_index=True, key=f"{key}-table", height=table_height(len(frame), 360), alt=f"Numbers: {alt}"
    )
    if len(table.rows) > _MOST_ROWS:
        st.caption(f"The first {_MOST_ROWS:,} of {counted(len(table.rows), 'row')}; the CSV has all.")
    st.download_button(
        "Table as CSV", table.as_csv, f"{name}.csv", "text/csv", on_click="ignore", key=f"{key}-table-csv",
        icon=":material/download:",
    )  # fmt: skip
