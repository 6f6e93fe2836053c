"""A torch.save archive that lost its directory, mostly because it lost its end: walked from the front by headers.

torch writes data.pkl first, so the pickle is usually whole even when most of the numbers are missing. Then every
name, shape and dtype can be shown, and for each storage how much of it is there.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint, Storage
from inspector.errors import CorruptFile
from inspector.limits import Limits
from inspector.readers.archives.zip_directory import Directory, NoDirectory
from inspector.readers.archives.zip_end import directory_in_front, far_end, search_refusal
from inspector.readers.assemble import Unpickled, checkpoint_from_pickle, unpickle
from inspector.readers.checks.truncation import Cut
from inspector.readers.finish import FileContent
from inspector.units import human_bytes

_LOCAL = b"PK\x03\x04"
_HAS_DESCRIPTOR = 0x8
_ALIGNMENT = 64


@dataclass(slots=True, kw_only=True)
class _Piece:
    name: str
    start: int
    nbytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """What stands at the front of an archive: its pickle and storages. end: where the last of its members ends."""

    pickle: Unpickled
    storages: dict[str, Storage]
    end: int

    @property
    def missing_nbytes(self) -> int:
        """How many bytes of its numbers are not in the file."""
        return sum(s.nbytes - s.present_nbytes for s in self.storages.values())


def walk_front(source: ByteSource, limits: Limits, error: CorruptFile) -> Walked:
    """An archive without a directory, from its first byte. Raises CorruptFile when not even the pickle is there."""
    first = _local(source, 0)
    if first is None or not first.name.lower().endswith("/data.pkl"):
        if not isinstance(error, NoDirectory):
            raise error
        end = far_end(source, limits)
        if end is not None:
            raise CorruptFile(
                f"{source.name} is a zip archive with {human_bytes(source.size - end)} behind it, and nobody looks so "
                "far back for its directory.",
                hint=f'Cut off what follows byte {end:,}. (torch.load says "{search_refusal(source.size, -1)}" to it.)',
            ) from error
        raise CorruptFile(
            f"{source.name} is a zip archive cut short: {human_bytes(source.size)} are there, but not its directory.",
            hint="Download or copy it again.",
        ) from error
    pickle = unpickle(source, first.start, source.size, limits)
    prefix = first.name.rpartition("/")[0]
    storages, end = _walk(source, prefix, pickle)
    return Walked(pickle=pickle, storages=storages, end=end)


def directory_of(walked: Walked, source: ByteSource, limits: Limits) -> Directory | None:
    """The directory of an archive that is whole, and is followed by so much else that nobody looking from the end
    finds it; None where it is really gone."""
    if walked.pickle.outcome.broken or walked.missing_nbytes:
        return None
    return directory_in_front(source, walked.end, len(walked.storages), limits)


def read_cut_zip(walked: Walked, source: ByteSource, limits: Limits, error: CorruptFile) -> Checkpoint:
    """A checkpoint of what is left."""
    pickle, storages = walked.pickle, walked.storages
    is_cut = isinstance(error, NoDirectory)
    cut = Cut(
        ends_at=source.size,
        missing_nbytes=walked.missing_nbytes,
        inside=_inside(pickle, storages),
        torch_says=search_refusal(source.size, -1) if is_cut else "",
        damaged="" if is_cut else error.says,
    )
    content = FileContent(
        format="torch-zip",
        format_says=f"torch.save zip archive, {'cut short' if is_cut else 'directory damaged'}",
        storages=storages,
    )
    return checkpoint_from_pickle(pickle, content, source=source, limits=limits, cut=cut)


def _inside(pickle: Unpickled, storages: dict[str, Storage]) -> str:
    """What the end of the file falls into."""
    if pickle.outcome.broken:
        return "its pickle, so more tensors may have followed"
    first = next((s for s in storages.values() if s.present_nbytes < s.nbytes), None)
    return f"storage {first.id[:40]}" if first else "what follows its numbers"


def _local(source: ByteSource, at: int) -> _Piece | None:
    if at + 30 > source.size:
        return None
    raw = source.read(at, 30)
    if raw[:4] != _LOCAL:
        return None
    flags, method = struct.unpack("<HH", raw[6:10])
    (packed,) = struct.unpack("<I", raw[18:22])
    name_n, extra_n = struct.unpack("<HH", raw[26:30])
    if method != 0 or at + 30 + name_n > source.size:
        return None
    name = source.read(at + 30, name_n).decode("utf-8", "backslashreplace")
    known = packed if not flags & _HAS_DESCRIPTOR and packed != 0xFFFFFFFF else None
    return _Piece(name=name, start=at + 30 + name_n + extra_n, nbytes=known)


def _walk(source: ByteSource, prefix: str, pickle: Unpickled) -> tuple[dict[str, Storage], int]:
    """Follow local headers; a storage's size comes from the pickle, since torch writes sizes behind the data. Also
    where the last member ends."""
    sizes = {key: ref.nbytes for key, ref in pickle.storages.items()}
    starts: dict[str, int] = {}
    at = end = pickle.outcome.end
    big_endian = False
    for _ in range(len(sizes) + 32):
        at = _next_header(source, at)
        piece = _local(source, at) if at >= 0 else None
        if piece is None:
            break
        folder = f"{prefix}/data/"
        if piece.name.startswith(folder) and piece.name[len(folder) :] in sizes:
            key = piece.name[len(folder) :]
            starts[key] = piece.start
            at = piece.start + sizes[key]
        else:
            if piece.name == f"{prefix}/byteorder" and piece.start + 3 <= source.size:
                big_endian = source.read(piece.start, 3) == b"big"
            at = piece.start + (piece.nbytes or 0)
        end = at
    made: dict[str, Storage] = {}
    for key, ref in pickle.storages.items():
        start = starts.get(key)
        room = max(0, source.size - start) if start is not None else 0
        made[key] = Storage(
            id=key,
            nbytes=sizes[key],
            present_nbytes=min(sizes[key], room),
            offset=start,
            device=ref.location or None,
            big_endian=big_endian,
        )
    return made, min(end, source.size)


def _next_header(source: ByteSource, at: int) -> int:
    """The next local header at or behind `at`: after the member come at most a descriptor and another's padding."""
    if at >= source.size:
        return -1
    window = source.read(at, min(4096, source.size - at))
    found = window.find(_LOCAL)
    return at + found if found >= 0 else -1
