"""The Open page's box for an address or an id of the hub: looked at by its header, nothing downloaded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import streamlit as st

from inspector.errors import AddressError, AddressRefused, InspectorError, NeedsWholeFile, NotPublic, ReadError
from inspector.limits import DEFAULT_LIMITS
from inspector.readers.hub.choice import Candidate, choose
from inspector.readers.hub.listing import list_repository, list_revisions
from inspector.readers.hub.opening import told_files
from inspector.readers.hub.place import has_scheme, is_hub_place, parse_place
from inspector.remote.address import is_web_address, parse_address
from inspector.web import remote_archives, remote_files, session, shelf
from inspector.web.front.variables import PRIVATE
from inspector.web.guard import said, show_error
from inspector.web.server_paths import server_root
from inspector.web.session import Hand
from inspector.web.store import Stored, the_store
from inspector.web.text import visible

_LISTING, _WHOLE = "hub-listing", "address-whole"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?!\d)")
# http:/host, http:host, backslashes, and //host, which only a page completes; "http:80" is a host with its port.
_NO_SLASHES = re.compile(r"(https?):(?!\d{1,5}(?:/|$))[/\\]*|//", re.IGNORECASE)
_HOST_AND_PORT = re.compile(r"[\w.-]+:\d{1,5}(/|$)")
# What `remote/networks.py` calls addresses of a machine's own.
_AT_HOME = ("(loopback", "(private", "(link-local", "(unspecified")
_ELSEWHERE = "Give its http or https address, or fetch it with its own tool and drop the file here."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """A repository that a visitor may choose from. where: as it was typed, without a file. is_clear: whether the first
    candidate is the one that is meant. holds: what else it has, in a sentence."""

    where: str
    revision: str
    candidates: tuple[Candidate, ...]
    revisions: tuple[str, ...]
    is_clear: bool
    holds: str = ""


def address_box() -> Hand | None:
    """The box, and what it asks next, or that it is off here; the file that was opened, None while there is none."""
    if not remote_files.are_allowed():
        st.caption(
            "This server opens no web addresses and no ids of the Hugging Face hub: fetch the file and drop it above."
        )
        return None
    with st.form("address", border=False, enter_to_submit=True):
        box, go = st.columns([6, 1], vertical_alignment="bottom")
        typed = box.text_input(
            "Or an address or an id of the Hugging Face hub",
            placeholder="https://example.com/model.safetensors or org/name",
            key="address-text",
        )
        asked = go.form_submit_button("Look", width="stretch", help="Only its header is read; nothing is downloaded.")
    if asked:
        st.session_state.pop(_LISTING, None)
        st.session_state.pop(_WHOLE, None)
        where = (typed or "").strip()
        with said():
            hand = _open(where) if where else None
            if hand is not None:
                return hand
    whole = st.session_state.get(_WHOLE)
    if whole is not None:
        with said():
            remote_files.offer_whole(whole, parse_address(whole).name)
    listing = st.session_state.get(_LISTING)
    return _choose(listing) if isinstance(listing, _Listing) else None


def offer_others(hand: Hand) -> None:
    """For a file of a repository: a button to the list of all its checkpoints, on Open. Nothing for any other file."""
    stored = the_store().find(hand.sha256) if hand.is_elsewhere else None
    if stored is None or not is_hub_place(stored.remote):
        return
    if st.button("Choose another file of it", key="hub-others", icon=":material/list:"):
        place = parse_place(stored.remote)
        with said(), _hub_named(place.text):
            st.session_state[_LISTING] = _list(replace(place, path="").text)
            st.session_state.pop(_WHOLE, None)
            st.switch_page("pages/open.py")


def _open(where: str) -> Hand | None:
    """None where there is something to choose first."""
    if is_web_address(where) and not is_hub_place(where):
        with _private_told(where):
            return _take(where)
    refuse_other_schemes(where)
    place = parse_place(where)
    with _hub_named(place.text):
        if place.path:
            return _take(place.text)
        listing = _list(where)
    if listing.is_clear:
        return _take(place.text)
    st.session_state[_LISTING] = listing
    return None


@contextmanager
def _hub_named(place: str) -> Iterator[None]:
    """Where nobody answers, the sentence speaks of the id that was typed, and not of a host that nobody typed."""
    try:
        yield
    except AddressError as error:
        # What a system says of a connection or a name is the cause; a refusal or an answer of the hub has none.
        if not isinstance(error.__cause__, OSError):
            raise
        raise AddressError(
            f"The hub cannot be reached from this server, so {place} was not looked up. {error.says}",
            hint="Without a network, fetch the file where there is one and drop it here.",
        ) from error.__cause__


@contextmanager
def _private_told(where: str) -> Iterator[None]:
    """Of an address that no visitor is served: what it is, why it is not asked, and what whoever runs the app sets."""
    try:
        yield
    except NotPublic as error:
        host = parse_address(where).host
        says = error.says
        if host == "localhost" or host.endswith(".localhost"):
            says = f"{host} is no public address (loopback)."
        if any(kind in says for kind in _AT_HOME):
            says = f"{says.removesuffix('.')}: it is on the machine that this app runs on, or in its network."
        way = "choose the file by its path on this server, above" if server_root() else "drop the file above"
        raise AddressRefused(
            says,
            hint="The app fetches what its visitors name, so anybody who may open it would read what only that machine "
            f"may. Who runs it allows that with {PRIVATE.name}=on. Or {way}.",
        ) from error


def refuse_other_schemes(where: str) -> None:
    """Raise AddressRefused, with what to do, for what is neither a web address nor an id of the hub."""
    if not is_web_address(where) and (broken := _NO_SLASHES.match(where)):
        scheme, rest = (broken[1] or "").lower(), where[broken.end() :].replace("\\", "/")
        begins = f"lacks the two slashes behind {scheme}:" if scheme else "lacks its scheme"
        raise AddressRefused(
            f"{where[:80]} {begins}, and is no web address like that.",
            hint=f"Write {scheme or 'https'}://{rest[:80]}.",
        )
    scheme = _SCHEME.match(where)
    if scheme is not None and not has_scheme(where) and not is_web_address(where):
        kind = scheme[1].lower()
        if kind == "file":
            raise AddressRefused("A file: address is a file of one machine.", hint="Drop the file in the box above.")
        raise AddressRefused(
            f"{kind}: is asked by no part of this page: http, https and ids of the hub are.", hint=_ELSEWHERE
        )
    if _HOST_AND_PORT.match(where):
        raise AddressRefused(
            f"{where[:80]} lacks its scheme.", hint=f"Write http://{where[:80]} or https://{where[:80]}."
        )


def _take(where: str) -> Hand | None:
    """None where all of it has to be fetched to be looked at, which is offered then. An archive of many files leads to
    the table of its members."""
    try:
        with st.spinner("Reading its header …"):
            found = _taken(where)
    except NeedsWholeFile as error:
        if is_web_address(where) and not is_hub_place(where):
            st.session_state[_WHOLE] = where
            error = NeedsWholeFile(error.says, hint=f'"{remote_files.FETCH_WHOLE}", below, brings it here.')
        show_error(error)
        return None
    if not isinstance(found, Hand):
        session.put_down()
        shelf.put_up_archive(found, the_store().name_of(found.sha256, session.owner()))
        st.switch_page("pages/files.py")
    return found


def _taken(where: str) -> Hand | Stored:
    """A checkpoint in hand, or an archive of many files. Raises what says why it is no checkpoint, where it is
    neither."""
    try:
        return session.take(remote_files.take(where))
    except AddressError:
        raise
    except ReadError as error:
        try:
            archive = remote_archives.take(where)
        except AddressError:
            raise
        except ReadError:
            archive = None
        if archive is None:
            raise error from None
        return archive


def _list(where: str) -> _Listing:
    place = parse_place(where)
    client = remote_files.client_for(where)
    with st.spinner("Asking the hub …"):
        repository = list_repository(place, client, DEFAULT_LIMITS.metered())
        found = choose(repository.files)
        revisions: tuple[str, ...] = ()
        if found.best is None and found.candidates:
            try:
                revisions = list_revisions(place, client, DEFAULT_LIMITS.metered())
            except InspectorError:
                revisions = ()
    return _Listing(
        where=replace(place, path="").text,
        revision=place.revision,
        candidates=found.candidates,
        revisions=revisions,
        is_clear=found.best is not None,
        holds="" if found.candidates else told_files(repository.files),
    )


def _choose(listing: _Listing) -> Hand | None:
    if not listing.candidates:
        st.info(visible(f"No file of it is named as a checkpoint. {listing.holds}"), icon=":material/folder_off:")
        return None
    place = parse_place(listing.where)
    which, revision, go = st.columns([5, 2, 1], vertical_alignment="bottom")
    chosen = which.selectbox(
        visible(f"Checkpoints of {place.repository}"),
        range(len(listing.candidates)),
        format_func=lambda i: visible(listing.candidates[i].says),
        key="hub-file",
    )
    current = listing.revision or "main"
    names = tuple(dict.fromkeys((current, *listing.revisions)))
    named = revision.selectbox("Revision", names, format_func=visible, key="hub-revision")
    if named is not None and named != current:
        with said():
            st.session_state[_LISTING] = _list(replace(place, revision=named).text)
            st.rerun()
    if go.button("Open it", key="hub-open", width="stretch") and chosen is not None:
        with said():
            return _take(replace(place, path=listing.candidates[chosen].path).text)
    return None
