"""The checkpoint in hand: which file this browser session looks at, and the files it had before.

The session keeps a digest and a name, nothing else; the bytes are in the content store, open files and reports in
bounded caches keyed by digest (`reports.py`). The address carries both, so a link or a reload finds it again; whoever
has the link may look at the file (see `store.py`).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import streamlit as st
from starlette.datastructures import Headers

from inspector.errors import ReadError
from inspector.web.front.visitors import own_visitors
from inspector.web.store import Stored, is_digest, linked_name, the_store

_HAND, _OWNER, _LINK, _MISSED = "hand", "owner", "followed_link", "missed_link"
QUERY, NAME_QUERY = "file", "name"
#: A tensor's name, on the pages that show one.
TENSOR_QUERY = "tensor"
#: "1" on the Convert page: what the file does not hold whole is left out.
SALVAGE_QUERY = "salvage"
_RECENT_KEPT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """A file as this session calls it. name: for display only. sha256: `stored.remote_id` of one that is elsewhere."""

    sha256: str
    name: str

    @property
    def is_elsewhere(self) -> bool:
        """Whether its bytes are behind an address, and only its header was read."""
        return self.sha256.startswith("r")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """A file this visitor opened. at: seconds since 1970."""

    hand: Hand
    at: float


def owner() -> str:
    """Whose files this session's are: its visitor's, by the browser's cookie or the proxy's user, so that a page that
    is loaded again has them still, and all pages of one visitor share one quota. Else an id of its own."""
    if _OWNER not in st.session_state:
        known = own_visitors().owner(Headers(headers=st.context.headers.to_dict()))
        st.session_state[_OWNER] = known or secrets.token_hex(12)
    return str(st.session_state[_OWNER])


def in_hand() -> Hand | None:
    """The file this session looks at."""
    hand = st.session_state.get(_HAND)
    return hand if isinstance(hand, Hand) else None


def take(stored: Stored, name: str = "") -> Hand:
    """Take a stored file in hand."""
    hand = Hand(sha256=stored.sha256, name=name or the_store().name_of(stored.sha256, owner()))
    the_store().claim(stored.sha256, name=hand.name, owner=owner())
    st.session_state[_HAND] = hand
    return hand


def put_down() -> None:
    """Look at no file; it stays in the store."""
    st.session_state[_HAND] = None
    _clear_address()


def recent() -> list[Recent]:
    """What this visitor opened, also before the page was loaded again, and the store still has, newest first."""
    own, found = owner(), []
    for stored in the_store().owned(own):
        at = stored.opened.get(own)
        if at is not None and the_store().is_here(stored.sha256):
            found.append(Recent(hand=Hand(sha256=stored.sha256, name=stored.names[own]), at=at))
        if len(found) == _RECENT_KEPT:
            break
    return found


def forget(hand: Hand) -> None:
    """Put it down and drop our claim on its bytes."""
    the_store().forget(hand.sha256, owner())
    if in_hand() == hand:
        st.session_state[_HAND] = None
        _clear_address()


def _clear_address() -> None:
    st.query_params.pop(QUERY, None)
    st.query_params.pop(NAME_QUERY, None)


def follow_link() -> None:
    """Take up the digest in the address, once per session, or once its file has come where it was gone. Afterwards keep
    the address in step with the hand.

    Raises ReadError when the address names no file.
    """
    hand = in_hand()
    wanted = st.query_params.get(QUERY, "")
    first = not st.session_state.get(_LINK)
    st.session_state[_LINK] = True
    if hand is None and wanted and (first or st.session_state.get(_MISSED) == wanted):
        stored = the_store().find(wanted)
        if stored is None or not the_store().is_here(wanted):
            if not is_digest(wanted):
                _clear_address()
                raise ReadError(
                    "The address names no file: it is not a sha256.", hint="Open the file on the Open page."
                )
            # The page asks for it (`missing`). In the next run it may be in the store, dropped there.
            st.session_state[_MISSED] = wanted
            return
        st.session_state.pop(_MISSED, None)
        hand = take(stored, linked_name(st.query_params.get(NAME_QUERY, "") or wanted[:12]))
    if hand is not None and (wanted != hand.sha256 or st.query_params.get(NAME_QUERY) != hand.name):
        st.query_params.from_dict({**st.query_params.to_dict(), QUERY: hand.sha256, NAME_QUERY: hand.name})


def missing() -> Hand | None:
    """The file that the address names and that is not here (any more), while no other is in hand."""
    wanted = st.query_params.get(QUERY, "")
    if in_hand() is not None or not is_digest(wanted) or the_store().is_here(wanted):
        return None
    return Hand(sha256=wanted, name=linked_name(st.query_params.get(NAME_QUERY, "") or wanted[:12]))


def stored(hand: Hand) -> Stored:
    """The store's record of a file. Raises ReadError when it has gone."""
    found = the_store().find(hand.sha256)
    if found is None:
        raise ReadError(f"{hand.name} is not on the server any more.", hint="Drop it again on the Open page.")
    return found


def nbytes_of(hand: Hand) -> int:
    """Its length, 0 when it has gone."""
    found = the_store().find(hand.sha256)
    return found.nbytes if found else 0
