"""The lines that do the same in the visitor's own script."""

from __future__ import annotations

import streamlit as st

from inspector.architectures.types import ArchitectureSpec
from inspector.keys.loading import WRITTEN
from inspector.keys.report import RepairPlan
from inspector.web.text import visible

_TALL = 40  # lines, above which the box scrolls


def show_code(plan: RepairPlan, name: str, spec: ArchitectureSpec | None) -> None:
    """Plain torch, copied with one click. spec: the target's, where it is one. Raises what `python_code` raises."""
    from inspector.keys.code import python_code

    # After a write two boxes of Python are on the page.
    st.caption(
        "The same from the file as you have it, without writing it:"
        if plan.format
        else f"These lines load {WRITTEN}: the command in them makes it, and so does the box above as .pth, "
        "once you call it that."
    )
    code = visible(python_code(plan, file_name=name, spec=spec))
    st.code(code, language="python", height=640 if code.count("\n") > _TALL else "content")
