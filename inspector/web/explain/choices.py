"""A choice whose words may change beneath it: what is shown is always what is chosen.

Streamlit's select box keeps the words of the option that was taken. Where the same option is called otherwise in the
next run (another share, another name), the box goes on to show the old words, and a choice made then is lost. Here the
words are part of the box's identity, and the choice is kept apart from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from inspector.units import shorten_middle
from inspector.web.text import plain, visible

T = TypeVar("T")
#: {slot: what a link asked for there}, in the session.
LINKED = "choices-of-a-link"


def choose_one(
    label: str, words: Mapping[T, str], slot: str, *, first: T | None, placeholder: str = "", says: str = ""
) -> T | None:
    """One of several. words: of each option, in the order that is shown. slot: where the choice stands in the session,
    for whoever sets it; nothing stands there as long as nobody chose. first: shown until then, and where the choice is
    none of the options, so that it may be another in the next run; None for none. says: on hover."""
    if st.session_state.get(slot) not in words:
        st.session_state.pop(slot, None)
    gone = linked_to(slot, words)
    digest = hashlib.sha256("\n".join(words.values()).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    box = f"{slot}-as-{digest}"
    st.session_state[box] = st.session_state.get(slot, first)

    def take() -> None:
        st.session_state[slot] = st.session_state[box]
        no_longer_linked(slot)

    chosen = st.selectbox(
        label,
        list(words),
        index=None if first is None else 0,
        format_func=words.__getitem__,
        key=box,
        on_change=take,
        placeholder=placeholder or None,
        disabled=not words,
        help=says or None,
    )
    if gone is not None:
        say_gone(gone, "nothing is chosen" if chosen is None else f"this is {words[chosen]}")
    return chosen


def linked_to(slot: str, offered: Container[object]) -> object | None:
    """What a link asked for there that is not offered; None for nothing else, or where somebody chose since."""
    linked: dict[str, object] = st.session_state.get(LINKED, {})
    return linked[slot] if slot in linked and linked[slot] not in offered else None


def no_longer_linked(slot: str) -> None:
    """The visitor chose there: what the link asked for does not matter any more."""
    st.session_state.get(LINKED, {}).pop(slot, None)


def say_gone(gone: object, instead: str, *, why: str = "none of these") -> None:
    """Whoever sent the link sees another thing there. gone: as `linked_to` gives it. instead: what stands there now."""
    asked = visible(shorten_middle(str(gone), 60))
    st.caption(f":material/link_off: {plain(f'The link asks for “{asked}”, which is {why}: {instead}.')}")


def settled(words: str, *, icon: str, key: str | None = None) -> DeltaGenerator:
    """What is settled, in a few words, with what changes it folded behind them: nothing moves when it is opened.
    key: where it stands whether it is open, for whoever closes it."""
    label = f"{plain(words)} :primary[change]"
    return st.popover(label, icon=icon, type="tertiary", key=key, on_change="ignore" if key is None else "rerun")


def folded(words: str, *, key: str, icon: str) -> DeltaGenerator:
    """An expander whose words may change while it is open: Streamlit folds one with other words up, unless it is told
    each time how it stands."""
    is_open = bool(st.session_state.get(key, False))
    return st.expander(words, expanded=is_open, key=key, icon=icon, on_change="rerun")
