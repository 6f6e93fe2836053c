"""What is chosen on a page, written into the browser's address in place: a step back leads to the page before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

_STATIC = Path(__file__).parent / "static"
_line = st.components.v2.component("inspector_address", html="", js=(_STATIC / "address.js").read_text("utf-8"))


def write_address(values: Mapping[str, str], *, key: str) -> None:
    """A name without a value is taken out; what others wrote into it stays. key: of the page."""
    _line(key=key, data=dict(values))
