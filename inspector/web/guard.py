"""What a visitor sees when something fails: one sentence and what to do, never a stack trace."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from inspector.errors import InspectorError
from inspector.render.page_words import in_page_words
from inspector.web.text import plain

_LOG = logging.getLogger("inspector.web")


def show_error(error: InspectorError) -> None:
    """The sentence and the hint of an error that we raised on purpose."""
    hint = f"\n\n{plain(in_page_words(error.hint))}" if error.hint else ""
    st.error(plain(in_page_words(error.says)) + hint, icon=":material/error:")


@contextmanager
def said() -> Iterator[None]:
    """Turn an InspectorError inside the block into its sentence on the page; the rest of the page goes on."""
    try:
        yield
    except InspectorError as error:
        show_error(error)


def on_script_error(error: Exception) -> bool:
    """Streamlit calls this for whatever a page did not expect. Returns True: it has been shown."""
    if isinstance(error, InspectorError):
        show_error(error)
        return True
    number = secrets.token_hex(4)
    _LOG.error("unexpected error %s", number, exc_info=error)
    st.error(
        f"This page met something it was not made for (error {number}, in the server's log). "
        "Your file is still here: try another page, or open the file again.",
        icon=":material/error:",
    )
    return True
