"""An archive of many files that stays at its address: looked at by a job, its members taken out of it one by one."""

from __future__ import annotations

import streamlit as st

from inspector.checkpoint.source import ByteSource
from inspector.errors import ReadError
from inspector.jobs.job import Job
from inspector.readers.hub.place import is_hub_place
from inspector.remote.address import is_web_address
from inspector.survey.at_address import ArchiveAsked, archive_at, find_archive
from inspector.web import remote_files, session
from inspector.web.guard import said
from inspector.web.store import Stored, clean_name, the_store
from inspector.web.store_remote import refer_remote
from inspector.web.stored import remote_id


def take(where: str) -> Stored | None:
    """Take up what is there, None where it is no archive of files. Raises as `find_archive`."""
    with remote_files.asking():
        found = find_archive(where, remote_files.client_for(where))
    if found is None:
        return None
    ident = remote_id(found.digest)
    return refer_remote(
        the_store(), ident, found.nbytes, remote=where, name=clean_name(found.name), owner=session.owner()
    )


def survey_job(ident: str, name: str) -> Job:
    """The look at every member. Raises ReadError where the archive is known no more."""
    # Of what its server says of it, whoever asks; under each name, which the rows begin with.
    return Job(kind="address-survey", arguments=(_asked(ident, name),), known_by=(ident, name))


def draw_line(ident: str, name: str) -> None:
    """Above the table: that the archive is elsewhere, and the way to all of it."""
    stored = the_store().find(ident)
    if stored is None:
        return
    with said(), st.container(horizontal=True, vertical_alignment="center", key="elsewhere"):
        st.markdown(
            ":material/cloud: **It stays at its address**, and only headers were read. A file that is opened is "
            "fetched by itself.",
            width="content",
        )
        if is_web_address(stored.remote) and not is_hub_place(stored.remote):
            remote_files.offer_whole(stored.remote, name)


def open_archive(ident: str, name: str) -> ByteSource:
    """To take members out of. Raises AddressError."""
    return archive_at(_asked(ident, name))


def _asked(ident: str, name: str) -> ArchiveAsked:
    stored = the_store().find(ident)
    if stored is None or not stored.remote:
        raise ReadError(f"{name} is not known here any more.", hint="Open its address again on the Open page.")
    remote_files.require_allowed()
    the_store().touch(ident)
    return ArchiveAsked(where=stored.remote, name=name, digest=ident[1:], policy=remote_files.policy_for(stored.remote))
