"""The drop zone: sends a file straight to the upload route, with progress, and tells the page its sha256.

Without the route (pages run without app.py) it is Streamlit's own upload box, whose bytes are copied at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from inspector.errors import InspectorError
from inspector.web import session
from inspector.web.guard import show_error
from inspector.web.store import Stored, clean_name
from inspector.web.uploads import UPLOAD_PATH, is_mounted, issue_token, the_store

_STATIC = Path(__file__).parent / "static"
KNOWN_ENDINGS = ".pth .pt .ckpt .bin .th .tar .safetensors .pt2 .gguf .onnx .npz"

_component = st.components.v2.component(
    "inspector_dropzone",
    html=(_STATIC / "dropzone.html").read_text(encoding="utf-8"),
    css=(_STATIC / "dropzone.css").read_text(encoding="utf-8"),
    js=(_STATIC / "dropzone.js").read_text(encoding="utf-8"),
)


def drop_zone(key: str = "dropzone") -> Stored | None:
    """Draw it; a file that has just arrived in the store, once, else None."""
    return _streaming(key) if is_mounted() else _fallback(key)


def _streaming(key: str) -> Stored | None:
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    result: Any = _component(
        key=key,
        data={
            "url": (f"/{base}" if base else "") + UPLOAD_PATH,
            "token": issue_token(session.owner()),
            "endings": KNOWN_ENDINGS,
        },
        on_stored_change=lambda: None,
    )
    told = result.stored
    if not isinstance(told, dict):
        return None
    # The browser only names the digest; whether we have it, and under which name, the store says.
    stored = the_store().find(str(told.get("sha256", "")))
    return stored if stored is not None and session.owner() in stored.names else None


def _fallback(key: str) -> Stored | None:
    round_key = f"{key}-round"
    turn = int(st.session_state.get(round_key, 0))
    upload = st.file_uploader("Checkpoint", key=f"{key}-{turn}", label_visibility="collapsed")
    if upload is None:
        return None
    # A fresh box next time: Streamlit then lets go of its own copies.
    st.session_state[round_key] = turn + 1
    try:
        return the_store().put_bytes(upload.getbuffer(), name=clean_name(upload.name), owner=session.owner())
    except InspectorError as error:
        show_error(error)
        return None
