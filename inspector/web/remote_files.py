"""Files that stay behind an address: looked at by their headers, fetched whole where their numbers are needed.

Such a file has no sha256, since nobody here read it; it is known by its address and what its server says of it
(`stored.remote_id`). Once it was fetched it is a file of the store like any other.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import streamlit as st

from inspector.checkpoint.types import Checkpoint
from inspector.errors import AddressError, AddressRefused, FileChanged, InspectorError
from inspector.jobs.client import Running
from inspector.jobs.job import Job
from inspector.jobs.subjects import FetchAsked
from inspector.readers import open_at
from inspector.readers.hub.place import is_hub_place
from inspector.readers.remote import RemoteOpened, hub_trusted
from inspector.remote.address import is_web_address
from inspector.remote.client import Client
from inspector.remote.download import Downloaded, Part
from inspector.remote.policy import VISITOR, Policy
from inspector.remote.proxy import with_proxy
from inspector.units import human_bytes
from inspector.web import jobs, own_code, session
from inspector.web.front.variables import ADDRESSES, PRIVATE
from inspector.web.guard import said, show_error
from inspector.web.session import Hand
from inspector.web.store import Stored, linked_name, the_store
from inspector.web.store_remote import place_for, refer_remote, take_over
from inspector.web.stored import remote_id
from inspector.web.text import plain

#: The button for an address whose file cannot be looked at by parts.
FETCH_WHOLE = "Fetch the whole file"
_UNDERWAY = "fetching"
_MOST_AT_ONCE = 4
_WAIT_SECONDS = 20.0
_MOST_KNOWN = 24
# What a look begins with, of the smallest file.
_SMALL_NBYTES = 1 << 20
_ON, _OFF = ("on", "1", "yes", "true"), ("off", "0", "no", "false")
_asking = threading.BoundedSemaphore(_MOST_AT_ONCE)
_lock = threading.Lock()
# What was opened on the Open page a moment ago, so that the next page does not ask again; and what each is made of.
_opened: OrderedDict[str, RemoteOpened] = OrderedDict()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fetch:
    """A file on its way. ident: of the file at its address, "" for one whose header cannot be had. name: as shown."""

    running: Running
    asked: FetchAsked
    ident: str
    name: str


def are_allowed() -> bool:
    """Whether this visitor may name addresses: as the operator says, else on a server of one's own machine."""
    stated = os.environ.get(ADDRESSES.name, "").strip().lower()
    return stated in _ON or (stated not in _OFF and own_code.is_own_visit())


def require_allowed() -> None:
    """Raise AddressRefused where this visitor may name none."""
    if not are_allowed():
        raise AddressRefused("This server opens no addresses.", hint="Its operator may allow it.")


def policy_for(where: str) -> Policy:
    """What visitors of this server may ask for. The operator's hub may be a private one: for its ids alone, else every
    page of it could be read."""
    private = os.environ.get(PRIVATE.name, "").strip().lower() in _ON
    policy = with_proxy(replace(VISITOR, private=private))
    return policy if is_web_address(where) and not is_hub_place(where) else hub_trusted(policy)


def client_for(where: str) -> Client:
    """For one look. Raises AddressRefused where addresses are not taken here."""
    require_allowed()
    return Client(policy_for(where))


def take(where: str) -> Stored:
    """Look at what is there, and take it up. Raises AddressError and what the readers raise."""
    found = _look(where)
    ident = remote_id(found.digest)
    with _lock:
        _opened[ident] = found
        while len(_opened) > _MOST_KNOWN:
            _opened.popitem(last=False)
    return refer_remote(the_store(), ident, found.nbytes, remote=found.where, name=_title(found), owner=session.owner())


def _title(found: RemoteOpened) -> str:
    return linked_name(found.title)


def _look(where: str) -> RemoteOpened:
    client = client_for(where)
    with asking():
        return open_at(where, client=client)


@contextmanager
def asking() -> Iterator[None]:
    """One of the few looks at a time. Raises AddressError where all of them take too long."""
    if not _asking.acquire(timeout=_WAIT_SECONDS):
        raise AddressError("This server is asking many addresses just now.", hint="Try again in a minute.")
    try:
        yield
    finally:
        _asking.release()


def open_again(stored: Stored, name: str) -> Checkpoint:
    """The checkpoint of a file that was taken up. Raises FileChanged where another one is there now."""
    with _lock:
        found = _opened.get(stored.sha256)
    if found is None:
        found = _look(stored.remote)
        if remote_id(found.digest) != stored.sha256:
            raise FileChanged(f"{name} is not the file any more that was opened.", hint="Open its address again.")
        with _lock:
            _opened[stored.sha256] = found
    return replace(found.checkpoint, origin=replace(found.checkpoint.origin, name=name))


def draw_line() -> None:
    """Above every page of a file that is elsewhere: that only its header was read, and the way to all of it."""
    hand = session.in_hand()
    if hand is None or not hand.is_elsewhere:
        return
    with said():
        _draw_fetch(hand)


def _draw_fetch(hand: Hand) -> None:
    stored = the_store().find(hand.sha256)
    if stored is None:
        return
    if _draw_underway(hand.sha256):
        return
    with st.container(horizontal=True, vertical_alignment="center", key="elsewhere"):
        with _lock:
            seen = _opened.get(hand.sha256)
        st.markdown(read_so_far(seen.fetched_nbytes if seen else 0, stored.nbytes), width="content")
        if st.button(f"Fetch the whole file ({human_bytes(stored.nbytes)})", key="fetch", icon=":material/download:"):
            with _lock:
                found = _opened.get(hand.sha256)
            if found is None:
                open_again(stored, hand.name)
                found = _opened[hand.sha256]
            parts = tuple(
                Part(address=p.address.text, name=p.name, identity=p.identity, sha256=p.sha256) for p in found.wanted
            )
            _start(stored.remote, parts, hand.sha256, hand.name, stored.nbytes)
            st.rerun()


def read_so_far(fetched_nbytes: int, nbytes: int) -> str:
    """What was read of a file at its address; a header that lies all over the file takes most of it."""
    if 2 * fetched_nbytes < nbytes or fetched_nbytes < _SMALL_NBYTES:
        return ":material/cloud: **Only its header was read**, at its address. Its numbers take the whole file."
    return (
        f":material/cloud: **Its header lies all over the file**: {human_bytes(fetched_nbytes)} of "
        f"{human_bytes(nbytes)} were read at its address, and none of its numbers. They take the whole file."
    )


def offer_whole(where: str, name: str) -> None:
    """For an address whose file cannot be looked at by parts."""
    ident = remote_id(_digest_of(where))
    if _draw_underway(ident):
        return
    if st.button(FETCH_WHOLE, key="fetch-whole", icon=":material/download:"):
        _start(where, (Part(address=where, name=name),), ident, name, 0)
        st.rerun()


def _digest_of(where: str) -> str:
    """Of an address alone, of whose file nothing is known."""
    return hashlib.sha256(f"whole\0{where}".encode("utf-8", "replace")).hexdigest()


def _start(where: str, parts: tuple[Part, ...], ident: str, name: str, nbytes: int) -> None:
    require_allowed()
    store = the_store()
    place = place_for(store, ident, nbytes, session.owner())
    policy = replace(policy_for(where), look_seconds=None, look_nbytes=None)
    # One whose server does not say how long it is ends where the disk does, and not behind it.
    most_nbytes = min(store.file_nbytes, store.quota_nbytes, shutil.disk_usage(store.incoming).free)
    asked = FetchAsked(parts=parts, policy=policy, place=place, most_nbytes=most_nbytes)
    running = jobs.start(Job(kind="fetch", arguments=(asked,)))
    _underway()[ident] = _Fetch(running=running, asked=asked, ident=ident, name=name)


def _underway() -> dict[str, _Fetch]:
    held: dict[str, _Fetch] = st.session_state.setdefault(_UNDERWAY, {})
    return held


def _draw_underway(ident: str) -> bool:  # noqa: RET503
    """Whether it is being fetched; when it has come, it is taken in hand and the page is drawn anew."""
    fetch = _underway().get(ident)
    if fetch is None:
        return False
    if not jobs.follow(fetch.running, title=f"Fetching {plain(fetch.name)}"):
        return True
    del _underway()[ident]
    came = fetch.running.result
    if isinstance(fetch.running.error, InspectorError):
        show_error(fetch.running.error)
    elif fetch.running.error is not None:
        raise fetch.running.error
    if not isinstance(came, Downloaded):
        return False  # It was stopped, or what ended it stands there now.
    stored = take_over(the_store(), fetch.asked.place, came.sha256, came.nbytes, name=fetch.name, owner=session.owner())
    session.take(stored, fetch.name)
    st.switch_page("pages/overview.py")  # which ends this run
