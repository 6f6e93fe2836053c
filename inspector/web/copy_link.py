"""A button that copies the address of the view: whoever opens it sees the same, as long as the file is there."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_STATIC = Path(__file__).parent / "static"
_button = st.components.v2.component(
    "inspector_copy_link",
    html=(_STATIC / "copy_link.html").read_text(encoding="utf-8"),
    css=(_STATIC / "copy_link.css").read_text(encoding="utf-8"),
    js=(_STATIC / "copy_link.js").read_text(encoding="utf-8"),
)


def copy_link(page: str) -> None:
    """The button, as wide as its words. page: which one this is; where it changed, its heading gets the focus."""
    _button(key="copy-link", data={"page": page}, width="content")
