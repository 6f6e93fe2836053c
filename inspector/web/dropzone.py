"""The drop zone: sends a file straight to the upload route, with progress, and tells the page its sha256.

Without the route (pages run without app.py) it is Streamlit's own upload box, whose bytes are copied at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from inspector.errors import InspectorError
from inspector.readers.header_look import HEAD_NBYTES, TAIL_NBYTES
from inspector.units import human_bytes
from inspector.web import session
from inspector.web.downloads import prefix
from inspector.web.front.paths import SLICES_PATH, UPLOAD_PATH
from inspector.web.guard import show_error
from inspector.web.provisional import ProvisionalView, the_uploads
from inspector.web.store import Stored, clean_name, the_store
from inspector.web.uploads import is_mounted, issue_token

_STATIC = Path(__file__).parent / "static"
KNOWN_ENDINGS = ".pth .pt .ckpt .bin .th .tar .safetensors .pt2 .gguf .onnx .npz"
_SAYS = f"{KNOWN_ENDINGS} … any name"
# A smaller file is here before its header has been looked at twice.
_AHEAD_NBYTES = 32 << 20
# At once; a folder of a whole project is no run.
_MOST = 200

_component = st.components.v2.component(
    "inspector_dropzone",
    html=(_STATIC / "dropzone.html").read_text(encoding="utf-8"),
    css=(_STATIC / "dropzone.css").read_text(encoding="utf-8"),
    js=(_STATIC / "dropzone.js").read_text(encoding="utf-8"),
)


def drop_zone(key: str = "dropzone", *, says: str = _SAYS, ahead: bool = False) -> Stored | None:
    """Draw it; a file that has just arrived in the store, once, else None. says: what it takes, in a line.

    ahead: whether slices of a large file are sent beside it, for `view_of_upload`.
    """
    return next(iter(_arrived(key, apart=False, says=says, ahead=ahead)), None)


def view_of_upload(key: str = "dropzone") -> ProvisionalView | None:
    """What is told already of the file that this zone, which was drawn with `ahead`, is sending; else None."""
    held = st.session_state.get(key)
    ident = held.get("ahead") if isinstance(held, Mapping) else None
    return the_uploads().find(session.owner(), ident) if isinstance(ident, str) else None


def drop_zones(key: str) -> tuple[Stored, ...]:
    """The same for several files that belong to each other, or a folder of them; each is stored by itself."""
    return _arrived(key, apart=True, says=_SAYS)


def _arrived(key: str, *, apart: bool, says: str, ahead: bool = False) -> tuple[Stored, ...]:
    return _streaming(key, apart, says, ahead) if is_mounted() else _fallback(key, apart)


def _streaming(key: str, apart: bool, says: str, ahead: bool) -> tuple[Stored, ...]:
    result: Any = _component(
        key=key,
        data={
            "url": prefix() + UPLOAD_PATH,
            "token": issue_token(session.owner()),
            "endings": KNOWN_ENDINGS,
            "says": f"{says}, up to {human_bytes(the_store().largest_nbytes)}",
            "apart": apart,
            "ahead": {"url": prefix() + SLICES_PATH, "from": _AHEAD_NBYTES, "head": HEAD_NBYTES, "tail": TAIL_NBYTES}
            if ahead
            else None,
        },
        on_stored_change=lambda: None,
        on_ahead_change=lambda: None,
    )
    told = result.stored
    if not isinstance(told, dict):
        return ()
    several = told.get("all")
    digests = several if apart and isinstance(several, list) else [told.get("sha256", "")]
    # The browser only names digests; whether we have them, and under which name, the store says.
    found = [the_store().find(str(digest)) for digest in digests[:_MOST]]
    return tuple(stored for stored in found if stored is not None and session.owner() in stored.names)


def _fallback(key: str, apart: bool) -> tuple[Stored, ...]:
    round_key = f"{key}-round"
    turn = int(st.session_state.get(round_key, 0))
    place = f"{key}-{turn}"
    # Streamlit holds all of it in memory, and takes no more than it is set to; ours may be less.
    most = max(1, min(the_store().largest_nbytes >> 20, int(st.get_option("server.maxUploadSize"))))
    uploads = (
        st.file_uploader(
            "Checkpoints", accept_multiple_files=True, key=place, label_visibility="collapsed", max_upload_size=most
        )
        if apart
        else [st.file_uploader("Checkpoint", key=place, label_visibility="collapsed", max_upload_size=most)]
    )
    came = [upload for upload in uploads if upload is not None]
    if not came:
        return ()
    # A fresh box next time: Streamlit then lets go of its own copies.
    st.session_state[round_key] = turn + 1
    stored: list[Stored] = []
    for upload in came[:_MOST]:
        try:
            stored.append(
                the_store().put_bytes(upload.getbuffer(), name=clean_name(upload.name), owner=session.owner())
            )
        except InspectorError as error:
            show_error(error)
    return tuple(stored)
