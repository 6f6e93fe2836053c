"""Which checkpoints: an archive, a folder or several files that are dropped, a folder of the server, a sample."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from inspector.errors import ReadError
from inspector.jobs.asked import RunRef
from inspector.jobs.job import Job
from inspector.web import jobs, samples, session, shelf
from inspector.web.dropzone import drop_zone
from inspector.web.guard import said
from inspector.web.server_paths import is_folder, listing, named, resolve_folder, server_root, store_path
from inspector.web.session import Hand
from inspector.web.store import Stored, is_digest, linked_name, the_store
from inspector.web.text import plain

#: The sample that the empty page offers.
SAMPLE = "training-run"
_HELD = "run-held"
_RUN, _NAME, _FOLDER = "run", "run-name", "run-folder"
_SAYS = "the checkpoints of one training: a folder, several files, or a .zip .tar .tar.gz of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What this session looks at. sha256: of a file in the store. folder: on the server, by its path under the folder
    that visitors may read. One of both is ""."""

    name: str
    sha256: str = ""
    folder: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """nbytes: of all its files."""

    run: RunRef
    nbytes: int


def choose_run(shows: str) -> Chosen | None:
    """What is chosen, with its name and a way to another; else the boxes to choose it, and None.

    shows: one sentence on what the page will show.
    """
    found = None
    held = _held()
    if held is not None:
        with said():
            found = _resolved(held)
    if found is None:
        _boxes(shows)
        return None
    assert held is not None
    _to_address(held)
    name, change = st.columns([6, 1.4], vertical_alignment="center")
    name.markdown(f"**{plain(held.name)}**")
    if change.button("Another run", icon=":material/close:", key="run-other", width="stretch"):
        _put_down()
        st.rerun()
    return found


def take(stored: Stored) -> None:
    """Look at this one from now on."""
    _hold(Held(name=the_store().name_of(stored.sha256, session.owner()), sha256=stored.sha256))


def take_shelf(files: shelf.Shelf) -> None:
    """Look at these many files, an archive or a folder of the server, as one training."""
    _hold(Held(name=files.name, sha256=files.sha256, folder=files.folder))


def _boxes(shows: str) -> None:
    with st.container(border=True, key="run-choice"):
        st.markdown(plain(shows))
        with said():
            stored = drop_zone("run-drop", says=_SAYS)
            if stored is not None:
                take(stored)
                st.rerun()
        with st.container(horizontal=True, vertical_alignment="bottom"):
            _offer_shelf()
            for sample in samples.some([SAMPLE]):
                if st.button(plain(f"Try “{sample.title}”"), key=f"run-{sample.id}", icon=":material/science:"):
                    with said():
                        take(samples.store(sample))
                        st.rerun()
            _server_choice()


def _offer_shelf() -> None:
    """The many files that were opened on another page."""
    held = shelf.current()
    if (
        held is not None
        and not held.is_elsewhere
        and st.button(plain(f"Take {held.name}"), key="run-shelf", icon=":material/folder_zip:")
    ):
        take_shelf(held)
        st.rerun()


def _server_choice() -> None:
    if server_root() is None:
        return
    offered = listing()
    folders, archives = offered.folders, offered.archives
    choice = st.selectbox(
        "Or on this server",
        [*folders, *archives],
        index=None,
        filter_mode="contains",
        placeholder=offered.holds(folders),
        accept_new_options=True,
        key="run-server-path",
    )
    if st.button("Take it", disabled=choice is None, key="run-take-path") and choice:
        with said():
            path = named(choice, (*folders, *archives))
            if is_folder(path):
                _hold(Held(name=path, folder=path))
            else:
                take(store_path(path))
            st.rerun()


def _held() -> Held | None:
    """What the address names, which a link brought; else what the session has."""
    digest, folder = st.query_params.get(_RUN, ""), st.query_params.get(_FOLDER, "")
    held = st.session_state.get(_HELD)
    held = held if isinstance(held, Held) else None
    if is_digest(digest) and (held is None or held.sha256 != digest):
        held = _claimed(digest, linked_name(st.query_params.get(_NAME, "") or digest[:12]))
    elif folder and (held is None or held.folder != folder):
        held = Held(name=folder, folder=folder)
    if held is not None:
        _hold(held)
    return held


def _claimed(digest: str, name: str) -> Held:
    """Whoever has the link may look at it; what has gone says so when it is opened."""
    stored = the_store().find(digest)
    if stored is not None and session.owner() not in stored.names:
        the_store().claim(digest, name=name, owner=session.owner())
    return Held(name=name, sha256=digest)


def _hold(held: Held) -> None:
    st.session_state[_HELD] = held
    _to_address(held)


def _to_address(held: Held) -> None:
    wanted = {_FOLDER: held.folder} if held.folder else {_RUN: held.sha256, _NAME: held.name}
    now = st.query_params.to_dict()
    if any(now.get(name, "") != wanted.get(name, "") for name in (_RUN, _NAME, _FOLDER)):
        others = {name: value for name, value in now.items() if name not in (_RUN, _NAME, _FOLDER)}
        st.query_params.from_dict({**others, **wanted})


def _put_down() -> None:
    st.session_state.pop(_HELD, None)
    for name in (_RUN, _NAME, _FOLDER):
        st.query_params.pop(name, None)


def _resolved(held: Held) -> Chosen:
    """Raises ReadError where it is gone, RefusedContent where it may not be read."""
    if held.folder:
        root = server_root()
        run = RunRef(name=held.name, sha256="", path=resolve_folder(held.folder), within=root)
        # A folder may change from one look to the next.
        listed: tuple[RunRef, int] = jobs.ask(Job(kind="run-folder", arguments=(run,)), says="Listing the checkpoints")
        return Chosen(run=listed[0], nbytes=listed[1])
    path = the_store().get_path(held.sha256)
    if path is None:
        _put_down()
        raise ReadError(f"{held.name} is not on the server any more.", hint="Drop it again.")
    the_store().touch(held.sha256)
    return Chosen(
        run=RunRef(name=held.name, sha256=held.sha256, path=path),
        nbytes=session.nbytes_of(Hand(sha256=held.sha256, name=held.name)),
    )
