"""Which pictures: an archive or folder that is dropped, one on the server, or a small set drawn on demand."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from inspector.errors import ReadError
from inspector.installed import sample_sources
from inspector.jobs.asked import DataFacts, DataRef
from inspector.jobs.job import Job
from inspector.side_files import read_bytes
from inspector.units import counted
from inspector.web import jobs, session
from inspector.web.address_line import write_address
from inspector.web.dropzone import drop_zone
from inspector.web.explain.choices import folded
from inspector.web.guard import said
from inspector.web.server_paths import is_folder, listing, named, resolve_folder, server_root, store_path
from inspector.web.store import Stored, is_digest, linked_name, the_store
from inspector.web.text import plain

_HELD, _LINK = "evaluation-data", "followed-evaluation-data"
# Of the address.
_DIGEST, _NAME, _FOLDER = "pictures", "pictures-name", "pictures-folder"
_ENDINGS = "a folder for each class, in a folder or in a .zip .tar .tar.gz"
_SAMPLE = "shapes_labelled.zip"
_SAMPLE_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What this session evaluates on. sha256: of an archive in the store. folder: on the server, by its path under the
    folder that visitors may read. One of both is ""."""

    name: str
    sha256: str = ""
    folder: str = ""


def choose_data() -> DataFacts | None:
    """The boxes, folded once pictures are chosen, and what lies there; None before that, and where it cannot be
    taken."""
    found = None
    with said():
        _follow_link()
    with said():
        found = _facts()
    held = st.session_state.get(_HELD) if found is not None else None
    write_address(_as_query(held if isinstance(held, Held) else None), key="evaluation-address-line")
    if found is None:
        with st.container(border=True, key="evaluation-choice"):
            st.markdown("**Choose pictures in class folders**")
            _boxes()
    else:
        with folded(f"Pictures · {plain(_says(found))}", key="evaluation-pictures", icon=":material/photo_library:"):
            _boxes()
    return found


def _follow_link() -> None:
    """Once per session: take up the pictures that the address names. Raises ReadError where they are gone,
    RefusedContent for a folder that is nobody's to see."""
    first = not st.session_state.get(_LINK)
    st.session_state[_LINK] = True
    digest, folder = st.query_params.get(_DIGEST, ""), st.query_params.get(_FOLDER, "")
    if not first or isinstance(st.session_state.get(_HELD), Held) or not (digest or folder):
        return
    if not digest:
        resolve_folder(folder)
        st.session_state[_HELD] = Held(name=folder, folder=folder)
        return
    if not is_digest(digest) or not the_store().is_here(digest):
        raise ReadError("The pictures of this link are not on the server any more.", hint="Drop them again.")
    name = linked_name(st.query_params.get(_NAME, "") or digest[:12])
    the_store().claim(digest, name=name, owner=session.owner())
    st.session_state[_HELD] = Held(name=name, sha256=digest)


def _as_query(held: Held | None) -> dict[str, str]:
    if held is None:
        return dict.fromkeys((_DIGEST, _NAME, _FOLDER), "")
    return {_DIGEST: held.sha256, _NAME: held.name if held.sha256 else "", _FOLDER: held.folder}


def _boxes() -> None:
    with said():
        stored = drop_zone("evaluation-drop", says=_ENDINGS)
        if stored is not None:
            _hold(stored)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if sample_sources() is not None and st.button(
            "Try 60 labelled shapes", key="evaluation-sample", icon=":material/science:"
        ):
            with said(), st.spinner("Drawing them …"):
                _hold(_drawn_sample())
        _server_choice()


def _server_choice() -> None:
    if server_root() is None:
        return
    offered = listing()
    folders, archives = offered.sets, offered.archives
    choice = st.selectbox(
        "Or on this server",
        [*folders, *archives],
        index=None,
        filter_mode="contains",
        placeholder=offered.holds(folders),
        accept_new_options=True,
        key="evaluation-server-path",
    )
    if st.button("Take it", disabled=choice is None, key="evaluation-take-path") and choice:
        with said():
            path = named(choice, (*folders, *archives))
            if is_folder(path):
                _take(Held(name=path, folder=path))
            else:
                _hold(store_path(path))


def _hold(stored: Stored) -> None:
    _take(Held(name=the_store().name_of(stored.sha256, session.owner()), sha256=stored.sha256))


def _take(held: Held) -> None:
    """The page is drawn anew with it: what stands above the boxes knows it too."""
    st.session_state[_HELD] = held
    st.rerun()


def _facts() -> DataFacts | None:
    held = st.session_state.get(_HELD)
    if not isinstance(held, Held):
        return None
    # A folder may change from one look to the next.
    job = Job(kind="class-folders" if held.folder else "archived-folders", arguments=(_ref(held),))
    found: DataFacts = jobs.ask(job, says="Listing the pictures")
    return found


def _ref(held: Held) -> DataRef:
    """Raises ReadError where it is gone, RefusedContent where it may not be read any more."""
    if held.folder:
        return DataRef(name=held.name, sha256="", path=resolve_folder(held.folder))
    path = the_store().get_path(held.sha256)
    if path is None:
        raise ReadError(f"{held.name} is not on the server any more.", hint="Drop it again.")
    the_store().touch(held.sha256)
    return DataRef(name=held.name, sha256=held.sha256, path=path)


def _says(found: DataFacts) -> str:
    left = f", {counted(found.left_out_count, 'file')} left out" if found.left_out_count else ""
    folders = counted(len(found.classes), "class folder")
    return f"{found.data.name}: {counted(found.pictures, 'picture')} in {folders}{left}."


def _drawn_sample() -> Stored:
    """Drawn by a program of its own, the same bytes each time. Raises ReadError where that fails."""
    sources = sample_sources()
    assert sources is not None
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / _SAMPLE
        command = [sys.executable, str(sources / "build.py"), "labelled", str(place)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_SAMPLE_SECONDS)
        except (subprocess.SubprocessError, OSError) as error:
            raise ReadError("The labelled pictures could not be drawn.", hint="Drop pictures of your own.") from error
        return the_store().put_bytes(read_bytes(place), name=_SAMPLE, owner=session.owner())
