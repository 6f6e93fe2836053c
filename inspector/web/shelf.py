"""Many files at once: an archive or a dropped folder, or a folder of the server, as a table to open files from.

The shelf stays beside the file in hand, so that there is a way back. It stands in the address as the file does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from inspector.checkpoint.source import ByteSource, PathSource
from inspector.errors import AddressError, InspectorError, ReadError, RefusedContent
from inspector.jobs.folder_state import state_of_folder
from inspector.jobs.job import Job
from inspector.limits import DEFAULT_LIMITS
from inspector.path_text import path_of_text
from inspector.progress import Progress
from inspector.readers.inside import holds_files
from inspector.survey.members import member_source
from inspector.survey.report import Survey, SurveyRow
from inspector.web import jobs, remote_archives, reports, session
from inspector.web.server_paths import resolve_folder, store_path
from inspector.web.session import Hand
from inspector.web.store import Stored, clean_name, is_digest, linked_name, the_store
from inspector.web.tar_chunks import tar_chunks

_SHELF, _LINK, _MISSED = "shelf", "followed-shelf", "missed-shelf"
_DIGEST, _NAME, _FOLDER = "shelf", "shelf-name", "folder"
_ROOT = "The server's folder"
_PIECE = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """sha256: of the archive in the store or at its address, "" for a folder of the server, whose path below the root
    is `folder`.

    name: of the archive, or of the folder that was dropped, as people call it.
    """

    name: str
    sha256: str = ""
    folder: str = ""

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is an archive that stays at its address."""
        return self.sha256.startswith("r")


def holds_many(stored: Stored, name: str) -> bool:
    """Whether it is an archive of files that are not one checkpoint together. Reads headers alone."""
    hand = Hand(sha256=stored.sha256, name=name)
    try:
        reports.checkpoint_of(hand)
    except InspectorError:
        pass
    else:
        return False
    path = the_store().get_path(stored.sha256)
    if path is None:
        return False
    try:
        source = PathSource(path, name)
        try:
            return holds_files(source, DEFAULT_LIMITS)
        finally:
            source.close()
    except InspectorError:
        return False


def show(stored: Stored, name: str = "") -> None:
    """Go on to what it is: one checkpoint, or many files. Does not come back."""
    hand = session.take(stored, name)
    show_if_many(hand)
    st.switch_page("pages/overview.py")


def show_if_many(hand: Hand) -> None:
    """Go on to the table where the file in hand is many files."""
    archive = _archive_at_address(hand) if hand.is_elsewhere else _archive_here(hand)
    if archive is not None:
        session.put_down()
        put_up_archive(archive, hand.name)
        st.switch_page("pages/files.py")


def _archive_here(hand: Hand) -> Stored | None:
    stored = session.stored(hand)
    return stored if holds_many(stored, hand.name) else None


def _archive_at_address(hand: Hand) -> Stored | None:
    """None for a checkpoint, and where its server does not say: the page that shows it says why."""
    try:
        reports.checkpoint_of(hand)
    except AddressError:
        return None
    except InspectorError:
        try:
            return remote_archives.take(session.stored(hand).remote)
        except InspectorError:
            return None
    return None


def show_folder(relative: str) -> None:
    """The files of a folder of the server to choose from."""
    put_up(Shelf(name=_folder_name(relative), folder=relative))
    st.switch_page("pages/files.py")


def put_up(shelf: Shelf) -> None:
    """The files to choose from, from now on."""
    st.session_state[_SHELF] = shelf


def put_up_archive(stored: Stored, name: str) -> None:
    """The members of an archive in the store."""
    the_store().claim(stored.sha256, name=name, owner=session.owner())
    put_up(Shelf(name=name, sha256=stored.sha256))


def follow_link() -> None:
    """Take up what the address names, once per session, or once its archive has come where it was gone. Afterwards keep
    the address in step.

    Raises ReadError where the address names none, RefusedContent for a folder of the server that is gone or nobody's
    to see.
    """
    first = not st.session_state.get(_LINK)
    st.session_state[_LINK] = True
    missed = st.session_state.get(_MISSED)
    if current() is None and (first or (missed and missed == st.query_params.get(_DIGEST))):
        _take_from_address()
    shelf = current()
    if shelf is None:
        return
    if shelf.sha256 and not the_store().is_here(shelf.sha256):
        # Where the address names it, it is asked for (`missing`); no other address gets it.
        st.session_state[_SHELF] = None
        return
    if not shelf.sha256:
        try:
            resolve_folder(shelf.folder)
        except InspectorError:
            st.session_state[_SHELF] = None
            _clear_address()
            raise
    _write_address(shelf)


def _clear_address() -> None:
    for name in (_DIGEST, _NAME, _FOLDER):
        st.query_params.pop(name, None)


def missing() -> Hand | None:
    """The archive that the address names and that is not here (any more), while no other is shown."""
    wanted = st.query_params.get(_DIGEST, "")
    if current() is not None or not is_digest(wanted) or the_store().is_here(wanted):
        return None
    # The id of one at an address says nothing to anybody.
    called = "an archive" if Shelf(name="", sha256=wanted).is_elsewhere else wanted[:12]
    return Hand(sha256=wanted, name=linked_name(st.query_params.get(_NAME, "") or called))


def drop_missing() -> None:
    """Take it out of the address: of a page that does not ask for it."""
    if missing() is not None:
        _clear_address()


def _take_from_address() -> None:
    digest, folder = st.query_params.get(_DIGEST, ""), st.query_params.get(_FOLDER, "")
    if digest:
        if not is_digest(digest):
            _clear_address()
            raise ReadError(
                "The address names no archive: it is not a sha256.", hint="Open the archive on the Open page."
            )
        stored = the_store().find(digest)
        if stored is None or not the_store().is_here(digest):
            # The page asks for it (`missing`). In the next run it may be in the store, dropped there.
            st.session_state[_MISSED] = digest
            return
        st.session_state.pop(_MISSED, None)
        put_up_archive(stored, linked_name(st.query_params.get(_NAME, "") or digest[:12]))
    elif folder:
        try:
            resolve_folder(folder)
        except RefusedContent:
            _clear_address()
            raise
        put_up(Shelf(name=_folder_name(folder), folder=folder))


def current() -> Shelf | None:
    """The one in use."""
    shelf = st.session_state.get(_SHELF)
    return shelf if isinstance(shelf, Shelf) else None


def _folder_name(folder: str) -> str:
    return Path(folder).name or _ROOT


def _write_address(shelf: Shelf) -> None:
    own = {_DIGEST: shelf.sha256, _NAME: shelf.name} if shelf.sha256 else {_FOLDER: shelf.folder}
    kept = {key: value for key, value in st.query_params.to_dict().items() if key not in (_DIGEST, _NAME, _FOLDER)}
    if kept | own != st.query_params.to_dict():
        st.query_params.from_dict(kept | own)


def survey(shelf: Shelf) -> Survey | None:
    """A row for each file; None while they are looked at, with progress and Stop. Raises what the work raises."""
    if shelf.is_elsewhere:
        job = remote_archives.survey_job(shelf.sha256, shelf.name)
    elif shelf.sha256:
        hand = Hand(sha256=shelf.sha256, name=shelf.name)
        job = Job(kind="archive-survey", arguments=(reports.file_of(hand),), near=shelf.sha256)
    else:
        place = resolve_folder(shelf.folder)
        state = state_of_folder(place, most=DEFAULT_LIMITS.members)
        job = Job(kind="folder-survey", arguments=(place,), known_by=(place, state.digest))
    found: Survey | None = jobs.await_job(job, title="Looking at every file")
    return found


def take(shelf: Shelf, row: SurveyRow, progress: Progress) -> Hand:
    """The file of a row in hand, copied into the store where it lies in an archive. Raises ReadError, and what the
    store raises without room."""
    return session.take(_stored(shelf, row, progress), clean_name(row.path))


def _stored(shelf: Shelf, row: SurveyRow, progress: Progress) -> Stored:
    if not shelf.sha256:
        place = resolve_folder(shelf.folder)
        path = path_of_text(row.path)
        if (place / path).is_dir():
            folder = resolve_folder(str(Path(shelf.folder, path)))
            sizes, chunks = tar_chunks(folder)
            return _put(chunks, folder.name, sizes, progress)
        return store_path(str(Path(shelf.folder, path)))
    source = _archive(shelf)
    try:
        member = member_source(source, row.path.removeprefix(f"{shelf.name}/"), DEFAULT_LIMITS)
        return _put(_pieces(member), row.path, member.size, progress)
    finally:
        source.close()


def _archive(shelf: Shelf) -> ByteSource:
    if shelf.is_elsewhere:
        return remote_archives.open_archive(shelf.sha256, shelf.name)
    path = the_store().get_path(shelf.sha256)
    if path is None:
        raise ReadError(f"{shelf.name} is not on the server any more.", hint="Drop it again on the Open page.")
    return PathSource(path, shelf.name)


def _put(chunks: Iterator[bytes], name: str, nbytes: int, progress: Progress) -> Stored:
    def counted() -> Iterator[bytes]:
        done = 0
        for chunk in chunks:
            progress(done, nbytes, "")
            done += len(chunk)
            yield chunk

    return the_store().put_chunks(counted(), name=clean_name(name), owner=session.owner(), announced=nbytes)


def _pieces(source: ByteSource) -> Iterator[bytes]:
    for offset in range(0, source.size, _PIECE):
        yield source.read(offset, min(_PIECE, source.size - offset))
