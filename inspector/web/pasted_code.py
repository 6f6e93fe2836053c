"""Code that is pasted instead of chosen as a file: a box, what in it makes the network, and a file of this session."""

from __future__ import annotations

import hashlib
import re
import tempfile
from pathlib import Path

import streamlit as st

from inspector.architectures.source_names import find_makers
from inspector.architectures.user_code import PREFIX

_FOLDER = "pasted-code-folder"
_NAME = re.compile(r"pasted_[0-9a-f]{12}\.py")
_MOST_CHARACTERS = 200_000


def ask_text(key: str) -> str:
    """The boxes; "code:pasted_….py:Net?num_classes=4" once it is said what makes the network, "" before.

    Raises UsageError for what is no Python, or has nothing in it that could.
    """
    text = st.text_area(
        "The network's code",
        placeholder="import torch\nfrom torch import nn\n\nclass Net(nn.Module):\n    ...",
        height=220,
        max_chars=_MOST_CHARACTERS,
        key=f"{key}-text",
        persist_state="session",
        help="The class of the network with its imports. What it imports has to be installed here.",
    )
    if not text or not text.strip():
        st.caption("Paste the class that builds the network, with its imports. Nothing of it runs before you say so.")
        return ""
    makers = find_makers(text)
    left, right = st.columns(2)
    name = left.selectbox(
        "What makes the network",
        makers.names,
        index=makers.names.index(makers.likely) if makers.likely else None,
        placeholder="choose a class or function",
        # Other names are another question.
        key=f"{key}-maker-{hashlib.sha256(repr(makers).encode()).hexdigest()[:8]}",
        persist_state="session",
    )
    arguments = right.text_input(
        "With the arguments", placeholder="num_classes=4&depth=18", key=f"{key}-arguments", persist_state="session"
    )
    if not name:
        st.caption("Several of them could make it: choose the one that gives the whole network.")
        return ""
    arguments = (arguments or "").strip()
    return f"{PREFIX}{_kept(text).name}:{name}" + (f"?{arguments}" if arguments else "")


def _kept(text: str) -> Path:
    """The text as a file of this session, named by its content; it goes with the session."""
    if _FOLDER not in st.session_state:
        st.session_state[_FOLDER] = tempfile.TemporaryDirectory(prefix="inspector-pasted-")
    raw = text.encode("utf-8", "surrogatepass")
    place = Path(st.session_state[_FOLDER].name) / f"pasted_{hashlib.sha256(raw).hexdigest()[:12]}.py"
    if not place.exists():
        place.write_bytes(raw)
    return place


def pasted_file(where: str) -> Path | None:
    """The file that such a name means in this session; None where it means none."""
    held = st.session_state.get(_FOLDER)
    if held is None or not _NAME.fullmatch(where):
        return None
    place = Path(held.name) / where
    return place if place.is_file() else None


def is_pasted(target: str) -> bool:
    """Whether a target names such a file."""
    return _NAME.fullmatch(target.removeprefix(PREFIX).partition(":")[0]) is not None
