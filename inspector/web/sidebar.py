"""The file in hand, beside every page."""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st

from inspector.errors import InspectorError
from inspector.units import human_bytes, shorten_middle
from inspector.web import session, shelf
from inspector.web.file_report import report_dialog
from inspector.web.guard import said
from inspector.web.reports import checkpoint_of
from inspector.web.text import escaped, mono, plain

_MOST_RECENT = 5


def draw() -> None:
    """The file in hand, the way back to the files it is one of, and what was opened before."""
    held = shelf.current()
    if held is not None:
        with st.sidebar.container(key="shelf"):
            st.page_link("pages/files.py", label=shorten_middle(held.name, 28), icon=":material/folder_open:")
    hand = session.in_hand()
    if hand is not None:
        _draw_hand(hand)
    _draw_recent({one.sha256 for one in (hand, held) if one is not None})


def _draw_recent(shown: Collection[str]) -> None:
    others = [entry for entry in session.recent() if entry.hand.sha256 not in shown][:_MOST_RECENT]
    if not others:
        return
    with st.sidebar.container(key="recent"):
        st.caption("Recent")
        for entry in others:
            # On Open, which knows what it is: one checkpoint, or many files.
            label = plain(shorten_middle(entry.hand.name, 26))
            if st.button(label, key=f"side-{entry.hand.sha256}", type="tertiary", help=plain(entry.hand.name)):
                with said():
                    shelf.show(session.stored(entry.hand), entry.hand.name)


def _draw_hand(hand: session.Hand) -> None:
    """Name, what it is, short digest, and the way to let go of it."""
    try:
        checkpoint = checkpoint_of(hand)
        what, size = checkpoint.format_says, human_bytes(checkpoint.origin.nbytes)
    except InspectorError:
        # The page says why, with its hint; here it is enough that there is nothing to show.
        what, size = "not readable", ""
    identity = "at its address" if hand.is_elsewhere else mono(hand.sha256[:12])
    with st.sidebar.container(border=True, key="in-hand"):
        st.html(
            f'<div class="mi-hand"><b>{escaped(hand.name)}</b><small>{escaped(what)}</small>'
            f"<small>{escaped(size)}{' · ' if size else ''}{identity}</small></div>"
        )
        if not hand.is_elsewhere and st.button(
            "Make a report", key="side-report", icon=":material/article:", type="tertiary"
        ):
            report_dialog(hand)
        if st.button("Forget this file", key="forget", icon=":material/delete:", type="tertiary"):
            session.forget(hand)
            st.switch_page("pages/open.py")
