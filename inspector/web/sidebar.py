"""The file in hand, beside every page."""

from __future__ import annotations

import streamlit as st

from inspector.errors import InspectorError
from inspector.units import human_bytes
from inspector.web import session
from inspector.web.reports import checkpoint_of
from inspector.web.text import escaped, mono


def draw() -> None:
    """Name, what it is, short digest, and the way to let go of it; nothing while no file is open."""
    hand = session.in_hand()
    if hand is None:
        return
    try:
        checkpoint = checkpoint_of(hand)
        what, size = checkpoint.format_says, human_bytes(checkpoint.origin.nbytes)
    except InspectorError:
        # The page says why, with its hint; here it is enough that there is nothing to show.
        what, size = "not readable", ""
    with st.sidebar.container(border=True, key="in-hand"):
        st.html(
            f'<div class="mi-hand"><b>{escaped(hand.name)}</b><small>{escaped(what)}</small>'
            f"<small>{escaped(size)}{' · ' if size else ''}{mono(hand.sha256[:12])}</small></div>"
        )
        if st.button("Forget this file", key="forget", icon=":material/delete:", type="tertiary"):
            session.forget(hand)
            st.switch_page("pages/open.py")
