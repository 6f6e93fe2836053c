"""A link whose file is not on the server: asks for the file and restores the view by its digest."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from inspector.web import session, shelf
from inspector.web.components import title
from inspector.web.dropzone import drop_zone
from inspector.web.store import Stored, the_store
from inspector.web.text import mono, plain


def draw_archive(page: str, wanted: session.Hand) -> None:
    """As `draw`, of the archive or the dropped folder whose files the page lists."""
    draw(page, wanted, what="folder", take=shelf.put_up_archive)


def draw(
    page: str, wanted: session.Hand, *, what: str = "file", take: Callable[[Stored, str], object] = session.take
) -> None:
    """Ask for it, in place of the page of this title, which comes with the file. take: what is done with it."""
    title(page, f"The {what} of this link is not on the server any more.")
    with st.container(border=True, key="gone-link"):
        st.markdown(f"**{plain(wanted.name)}**")
        if wanted.is_elsewhere:
            st.html(
                "<p>It stayed at an address, which this server does not know any more: open that address again.</p>"
            )
            st.page_link("pages/open.py", label="Open an address", icon=":material/link:")
            return
        st.html(
            "<p>Drop it here, and the page shows what the link showed. Its sha256 begins with "
            f"{mono(wanted.sha256[:12])}.</p>"
        )
        # A zone that has handed a file on shows that it is read: the next one begins anew.
        tries = st.session_state.get("gone-tries", 0)
        stored = drop_zone(f"gone-dropzone-{tries}")
        if stored is not None and stored.sha256 == wanted.sha256:
            take(stored, wanted.name)
            st.rerun()
        if stored is not None:
            st.session_state["gone-other"] = (wanted.sha256, stored)
            st.session_state["gone-tries"] = tries + 1
            st.rerun()
        asked, other = st.session_state.get("gone-other", ("", None))
        if other is not None and asked == wanted.sha256:
            st.warning(
                plain(f"{_name_of(other)} is another file: its sha256 begins with {other.sha256[:12]}."),
                icon=":material/difference:",
            )
            if st.button("Open it all the same", key="gone-open-other"):
                del st.session_state["gone-other"]
                take(other, _name_of(other))
                st.rerun()
        st.page_link("pages/open.py", label="Open something else", icon=":material/upload_file:")


def _name_of(stored: Stored) -> str:
    return the_store().name_of(stored.sha256, session.owner())
