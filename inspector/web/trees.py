"""Trees, tables and marks as HTML, drawn on a page."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from inspector.render.tree_html import Branch, badge, elements_below, module_branch, tree_html, value_branch
from inspector.web.text import escaped, mono

__all__ = ["Branch", "badge", "elements_below", "module_branch", "value_branch"]

_ROWS = 400
# Pixels of a row of Streamlit's tables at the theme's size of letters; by its own 35 an empty half of one stood below.
_ROW = 35 * 15 / 16


def draw_tree(branches: Sequence[Branch], *, open_depth: int = 1, heads: Sequence[str] = ()) -> None:
    """Draw them, as `tree_html` makes them."""
    st.html(tree_html(branches, open_depth=open_depth, heads=heads))


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: Sequence[int] = (), key: str = "") -> None:
    """A table of HTML cells; callers escape (`text.escaped`, `text.mono`). numeric: right-aligned columns.

    Beyond 400 rows it says how many more there are.
    """

    def cell(tag: str, index: int, inner: str) -> str:
        tone = ' class="mi-num"' if index in numeric else ""
        return f"<{tag}{tone}>{inner}</{tag}>"

    # A head without a word heads nothing.
    heading = "".join(cell("th" if name else "td", i, escaped(name)) for i, name in enumerate(head))
    body = "".join(
        "<tr>" + "".join(cell("td", i, inner) for i, inner in enumerate(row)) + "</tr>" for row in rows[:_ROWS]
    )
    if len(rows) > _ROWS:
        body += f'<tr><td colspan="{len(head)}">and {len(rows) - _ROWS:,} more</td></tr>'
    st.html(
        f'{scrolled(", ".join(filter(None, head)) or key)}<table class="mi-table" data-table="{escaped(key)}">'
        f"<thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def table_height(rows: int, most: int) -> int:
    """Pixels of Streamlit's own kind of table: as high as its head and its rows, and no higher than `most`."""
    return min(most, math.ceil(2 + _ROW * (max(1, rows) + 1)))


def scrolled(says: str) -> str:
    """Opens a box that scrolls sideways where the screen is narrow, by keyboard too; closed by `</div>`. says: what it
    holds."""
    return f'<div class="mi-scroll" tabindex="0" role="group" aria-label="{escaped(f"Table: {says}")}">'


def arrow(source: str, target: str) -> str:
    """A key on its way to another, as HTML."""
    return f'{mono(source, 60)}<span class="mi-arrow">→</span>{mono(target, 60)}'
