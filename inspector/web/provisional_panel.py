"""What is told of a file while it is on its way, below the drop zone that sends it.

Not on a page of its own: the upload ends when its drop zone leaves the page.
"""

from __future__ import annotations

import streamlit as st

from inspector.units import counted, human_bytes
from inspector.web.answers import bare_rows
from inspector.web.components import figures, file_line, finding_cards, verdict_rows
from inspector.web.provisional import ProvisionalView
from inspector.web.text import plain


def draw(view: ProvisionalView) -> None:
    """The answer so far, and that it is not the last word."""
    with st.container(key="provisional"):
        st.header(plain(view.name), anchor=False)
        file_line(view.format_says, human_bytes(view.nbytes), "")
        took = f"{human_bytes(view.fetched_nbytes)} in {counted(view.requests, 'request')}"
        st.markdown(
            f":material/hourglass_top: **Still uploading.** This is from the file's header alone ({took}). "
            "Once the file has arrived it is read anew, and what it says then counts. "
            "Leaving this page ends the upload."
        )
        verdict_rows(bare_rows(view.answers))
        figures(view.figures)
        finding_cards(view.findings)
