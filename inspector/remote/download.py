"""A whole file from an address into a place on this machine, piece by piece, with its sha256."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from inspector.checkpoint.sent_folder import BLOCK, member_header
from inspector.errors import AddressError, FileChanged, LimitExceeded, NeedsWholeFile
from inspector.progress import Progress
from inspector.remote.address import parse_address
from inspector.remote.client import Client
from inspector.remote.policy import Policy
from inspector.remote.source import HttpSource, Identity
from inspector.units import human_bytes

_PIECE_NBYTES = 8 << 20
_STREAM_NBYTES = 1 << 20
_ELSEWHERE = "Download it and open it from disk."


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One file. identity: what it is to be, None where that is not known. sha256: that it is to have, "" likewise."""

    address: str
    name: str
    identity: Identity | None = None
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloaded:
    """sha256, nbytes: of what was written: the file, or a tar of several under their names."""

    sha256: str
    nbytes: int


class _Written:
    """What is written, its length and digest."""

    def __init__(self, file: io.BufferedIOBase, most_nbytes: int, name: str) -> None:
        self.file = file
        self.most_nbytes = most_nbytes
        self.name = name
        self.digest = hashlib.sha256()
        self.nbytes = 0

    def write(self, data: bytes) -> None:
        self.nbytes += len(data)
        if self.nbytes > self.most_nbytes:
            raise LimitExceeded(
                f"{self.name} is longer than {human_bytes(self.most_nbytes)}, which is the most that is taken here.",
                hint=_ELSEWHERE,
            )
        self.digest.update(data)
        self.file.write(data)

    def check_room(self, announced: int) -> None:
        """Raise LimitExceeded where so many more bytes are too many, before the first of them comes."""
        if self.nbytes + announced > self.most_nbytes:
            raise LimitExceeded(
                f"{self.name} is said to be {human_bytes(self.nbytes + announced)} long; "
                f"{human_bytes(self.most_nbytes)} are the most that is taken here.",
                hint=_ELSEWHERE,
            )


def download(parts: Sequence[Part], place: Path, policy: Policy, *, most_nbytes: int, progress: Progress) -> Downloaded:
    """One part as it is, several as a tar. Nothing stays at the place when this raises.

    Raises AddressError for what cannot be had, FileChanged for another file than the one that was looked at,
    LimitExceeded above most_nbytes, and what progress raises.
    """
    client = Client(policy)
    try:
        with place.open("wb") as file:
            written = _Written(file, most_nbytes, parts[0].name)
            total = sum(part.identity.size for part in parts if part.identity is not None) or None
            done = 0
            for part in parts:
                done = _take(part, client, written, len(parts) > 1, done, total, progress)
            if len(parts) > 1:
                written.write(bytes(2 * BLOCK))
        progress(done, done, "")
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    finally:
        client.close()
    return Downloaded(sha256=written.digest.hexdigest(), nbytes=written.nbytes)


def _take(
    part: Part, client: Client, written: _Written, packed: bool, done: int, total: int | None, progress: Progress
) -> int:
    size, pieces = _open(part, client, written)
    own = hashlib.sha256()
    if packed:
        if size is None:
            raise NeedsWholeFile(f"The server of {part.name} does not say how long it is.")
        written.write(member_header(part.name, size))
    before = done
    progress(done, total or size, part.name)
    for piece in pieces():
        written.write(piece)
        own.update(piece)
        done += len(piece)
        progress(done, total or size, part.name)
    if size is not None and done - before != size:
        raise AddressError(f"The server of {part.name} sent {done - before:,} of {size:,} bytes.")
    if part.sha256 and own.hexdigest() != part.sha256:
        raise FileChanged(f"{part.name} is not the file that the hub lists: its sha256 differs.")
    if packed:
        written.write(bytes(-(done - before) % BLOCK))
    return done


def _open(part: Part, client: Client, written: _Written) -> tuple[int | None, Callable[[], Iterator[bytes]]]:
    """(length, its pieces): by ranges, each of which can be tried again; else in one go."""
    try:
        source = HttpSource(part.address, name=part.name.rpartition("/")[2], client=client)
    except NeedsWholeFile:
        return None, lambda: _streamed(part, client, written)
    if part.identity is not None and part.identity.differs(source.identity):
        raise FileChanged(f"{part.name} is not the file any more that was looked at.", hint="Open it again.")

    written.check_room(source.size)

    def pieces() -> Iterator[bytes]:
        for at in range(0, source.size, _PIECE_NBYTES):
            yield source.read(at, min(_PIECE_NBYTES, source.size - at))

    return source.size, pieces


def _streamed(part: Part, client: Client, written: _Written) -> Iterator[bytes]:
    with client.stream(parse_address(part.address), name=part.name) as opened:
        announced = opened.length
        written.check_room(announced or 0)
        came = 0
        while True:
            opened.go_on(_STREAM_NBYTES)
            data = opened.read(_STREAM_NBYTES)
            if not data:
                break
            came += len(data)
            yield data
        if announced is not None and came != announced:
            raise AddressError(f"The server of {part.name} sent {came:,} of {announced:,} bytes.")
