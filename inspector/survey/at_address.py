"""An archive of many files behind an address: a row for each member, looked at where it lies.

Of a zip archive the directory and the header of each stored member are read, of a tar one header after the other; what
is compressed comes whole, and is taken so only while it is small.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from inspector.checkpoint.packed_source import packing_of
from inspector.checkpoint.source import BufferSource, ByteSource
from inspector.errors import AddressError, FileChanged, NeedsWholeFile
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.progress import Progress, silent
from inspector.readers.hub.listing import list_repository
from inspector.readers.hub.place import is_hub_place, parse_place
from inspector.readers.inside import look_inside
from inspector.readers.opening import peek_at
from inspector.remote.address import WebAddress, is_web_address, parse_address
from inspector.remote.client import Client
from inspector.remote.policy import Policy
from inspector.remote.source import HttpSource, Identity
from inspector.survey.members import survey_source
from inspector.survey.report import SurveyRow
from inspector.survey.row import Reading
from inspector.units import human_bytes

# So little is fetched at once: its members would take more requests than bytes.
_SMALL_NBYTES = 8 << 20
_PACKED_NBYTES = 64 << 20
# The look at hundreds of members, each some requests; it has its progress, and a way to stop.
_SECONDS = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveAsked:
    """where: an address or a place on the hub. digest: as it was found, or its beginning. policy: of what may be
    asked."""

    where: str
    name: str
    digest: str
    policy: Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveFound:
    """digest: of where it is and what its server says of it, as hexadecimal digits."""

    name: str
    nbytes: int
    digest: str


def find_archive(where: str, client: Client, limits: Limits = DEFAULT_LIMITS) -> ArchiveFound | None:
    """None for what is no archive of files. Raises AddressError, NeedsWholeFile where looking at the members would take
    the whole of a large file, and what the readers of archives raise."""
    with _Opened(where, client) as source:
        whole = _whole_if_small(source)
        inside = look_inside(whole, limits, at_end=False)
        if inside is not None and inside.stream is not None:
            inside = look_inside(inside.stream, limits, at_end=False)
        if inside is None or not inside.names:
            return None
        return ArchiveFound(name=source.name, nbytes=source.size, digest=_digest(where, source.identity))


def survey_archive(asked: ArchiveAsked, reading: Reading, *, progress: Progress = silent) -> tuple[SurveyRow, ...]:
    """The archive's own row and one for every member. Raises AddressError as soon as one read fails: a row must not say
    of a file what is true of the line."""
    with _Opened(asked.where, _patient(asked.policy)) as source:
        _require_same(asked, source)
        steady = _Steady(_whole_if_small(source))
        rows = survey_source(steady, asked.name, reading, progress=progress)
        if steady.failed is not None:
            raise steady.failed
        return rows


def archive_at(asked: ArchiveAsked) -> ByteSource:
    """The archive to take members out of. Raises FileChanged where another file is there now."""
    source = _Opened(asked.where, _patient(asked.policy)).source
    _require_same(asked, source)
    return _whole_if_small(source)


def _require_same(asked: ArchiveAsked, source: HttpSource) -> None:
    if not asked.digest or not _digest(asked.where, source.identity).startswith(asked.digest):
        raise FileChanged(f"{asked.name} is not the file any more that was opened.", hint="Open its address again.")


def _patient(policy: Policy) -> Client:
    return Client(replace(policy, look_seconds=_SECONDS, look_nbytes=None))


def _digest(where: str, identity: Identity) -> str:
    told = ["archive", where, identity.size, identity.etag, identity.modified]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _whole_if_small(source: HttpSource) -> ByteSource:
    """Its bytes where they are few, or where little of it could be read by parts."""
    is_packed = packing_of(source.read(0, min(16, source.size))) is not None
    if source.size <= (_PACKED_NBYTES if is_packed else _SMALL_NBYTES):
        return BufferSource(source.read(0, source.size), source.name)
    if is_packed:
        raise NeedsWholeFile(f"{source.name} is compressed as a whole: nothing of it can be looked at by parts.")
    directory = peek_at(source).directory
    packed = sum(one.packed_nbytes for one in directory.members if one.method) if directory is not None else 0
    if packed > _PACKED_NBYTES:
        raise NeedsWholeFile(
            f"The members of {source.name} are compressed: looking at them takes {human_bytes(packed)} of its "
            f"{human_bytes(source.size)}."
        )
    return source


class _Opened:
    """A source over what is behind an address or at a place on the hub; what it holds goes at the end of the block."""

    def __init__(self, where: str, client: Client) -> None:
        self._client = client
        self.source = HttpSource(_address_of(where, client), client=client)

    def __enter__(self) -> HttpSource:
        return self.source

    def __exit__(self, *_: object) -> None:
        self.source.close()
        self._client.close()


def _address_of(where: str, client: Client) -> WebAddress:
    if is_web_address(where) and not is_hub_place(where):
        return parse_address(where)
    place = parse_place(where)
    return list_repository(place, client, DEFAULT_LIMITS.metered()).address_of(place.path)


class _Steady:
    """A source that remembers the first read that its server did not answer, and asks for nothing more after it."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self.failed: AddressError | None = None
        self.distant = getattr(source, "distant", False)

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def size(self) -> int:
        return self._source.size

    def read(self, offset: int, n: int) -> bytes:
        return self.read_many([(offset, n)])[0]

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        if self.failed is not None:
            raise self.failed
        wanted = list(ranges)
        try:
            # One by itself is read ahead of.
            return [self._source.read(*wanted[0])] if len(wanted) == 1 else self._source.read_many(wanted)
        except AddressError as error:
            self.failed = error
            raise

    def close(self) -> None:
        self._source.close()
