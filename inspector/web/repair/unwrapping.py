"""The weights without what is wrapped around them: one click, for a network that no library knows."""

from __future__ import annotations

import streamlit as st

from inspector.checkpoint.types import StateDict
from inspector.errors import ExportError
from inspector.web import writing
from inspector.web.session import Hand
from inspector.web.text import plain


def show_unwrap(hand: Hand, state: StateDict) -> None:
    """Say what would come off and write it; nothing is drawn where nothing is wrapped."""
    from inspector.exports.unwrap import PROOF, unwrap

    try:
        found = unwrap(state)
    except ExportError as error:
        st.caption(plain(str(error)))
        return
    if not found.says:
        return
    st.markdown("**Or without a target**")
    st.caption(plain(f"{found.says} {PROOF}"))
    options = writing.choose_options("unwrap-")
    slot = f"unwrapped/{hand.sha256}/{state.path}/{options}"
    stem = f"{writing.stem_of(hand.name)}_unwrapped"
    job = writing.as_is(hand, found.state)
    writing.write_button(slot, lambda: writing.write(job, options, name="unwrapped", stem=stem), key="unwrap-write")
