"""A zip's central directory, read as torch's own reader (miniz) reads it.

zipfile and miniz disagree on crafted archives: about duplicate names, case, data before the archive, and second
archives. torch reads what this reads; where another tool would read something else, that is said.
Source: PKWARE APPNOTE 6.3.9, sections 4.3 and 4.5.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from inspector.checkpoint.source import ByteSource
from inspector.errors import CorruptFile, LimitExceeded
from inspector.limits import Limits

_TAIL_NBYTES = 65536 + 22
_MOST_ENDS = 8
_END = b"PK\x05\x06"
_END64 = b"PK\x06\x06"
_LOCATOR64 = b"PK\x06\x07"
_ENTRY = b"PK\x01\x02"
_LOCAL = b"PK\x03\x04"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One entry of the directory. Sizes in bytes; header_offset: of its local header in the file."""

    name: str
    flags: int
    method: int
    packed_nbytes: int
    nbytes: int
    header_offset: int

    @property
    def encrypted(self) -> bool:
        """The encryption flag, which torch refuses."""
        return bool(self.flags & 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """members: in directory order. doubts: why torch and other tools may read different content."""

    members: tuple[Member, ...]
    doubts: tuple[str, ...]
    trailing_nbytes: int


class NoDirectory(CorruptFile):
    """A zip whose directory is not there: cut short, or never finished."""


def read_directory(source: ByteSource, limits: Limits) -> Directory:
    """Raises NoDirectory when there is no end record, CorruptFile when the directory is damaged."""
    start = max(0, source.size - _TAIL_NBYTES)
    tail = source.read(start, source.size - start)
    # Below 18 bytes the difference would be negative, and count from the end.
    at = tail.rfind(_END, 0, max(0, len(tail) - 18))
    if at < 0:
        raise NoDirectory(f"{source.name} is a zip archive without its directory.")
    first: CorruptFile | None = None
    for _ in range(_MOST_ENDS):
        try:
            return _directory_at(source, tail, start, at, limits)
        except CorruptFile as error:
            first = first or error
            at = tail.rfind(_END, 0, at)
            if at < 0:
                break
    raise first or NoDirectory(f"{source.name} is a zip archive without its directory.")


def _directory_at(source: ByteSource, tail: bytes, start: int, at: int, limits: Limits) -> Directory:
    """The directory that the end record at tail[at] describes. start: where the tail begins in the file."""
    count, nbytes, offset, comment = struct.unpack("<HIIH", tail[at + 10 : at + 22])
    end_at = start + at
    trailing = source.size - (end_at + 22 + comment)
    big = _end64(source, end_at)
    if big is not None and (count == 0xFFFF or nbytes == 0xFFFFFFFF or offset == 0xFFFFFFFF or big[0] == count):
        count, nbytes, offset, directory_end = big
    else:
        directory_end = end_at
    if nbytes > limits.header_nbytes or count > limits.members:
        raise LimitExceeded(f"The directory of {source.name} says {count:,} members in {nbytes:,} bytes.")
    if offset + nbytes > source.size:
        raise CorruptFile(
            f"The directory of {source.name} would end at byte {offset + nbytes:,}, behind the end of the file.",
            hint="Download or copy it again.",
        )
    members = _members(source, source.read(offset, nbytes), count)
    doubts = _doubts(members, offset + nbytes, directory_end, tail, at)
    return Directory(members=members, doubts=tuple(doubts), trailing_nbytes=max(0, trailing))


def _end64(source: ByteSource, end_at: int) -> tuple[int, int, int, int] | None:
    if end_at < 20:
        return None
    locator = source.read(end_at - 20, 20)
    if locator[:4] != _LOCATOR64:
        return None
    (at,) = struct.unpack("<Q", locator[8:16])
    if at + 56 > source.size:
        return None
    record = source.read(at, 56)
    if record[:4] != _END64:
        return None
    count, nbytes, offset = struct.unpack("<QQQ", record[32:56])
    return count, nbytes, offset, at


def _members(source: ByteSource, raw: bytes, count: int) -> tuple[Member, ...]:
    members: list[Member] = []
    at = 0
    for _ in range(count):
        if raw[at : at + 4] != _ENTRY or at + 46 > len(raw):
            raise CorruptFile(
                f"The directory of {source.name} breaks off after {len(members):,} of {count:,} members.",
                hint="Download or copy it again.",
            )
        flags, method = struct.unpack("<HH", raw[at + 8 : at + 12])
        packed, nbytes, name_n, extra_n, comment_n = struct.unpack("<IIHHH", raw[at + 20 : at + 34])
        (offset,) = struct.unpack("<I", raw[at + 42 : at + 46])
        name = raw[at + 46 : at + 46 + name_n]
        extra = raw[at + 46 + name_n : at + 46 + name_n + extra_n]
        nbytes, packed, offset = _wide(extra, nbytes, packed, offset)
        members.append(
            Member(
                name=name.decode("utf-8", "backslashreplace"),
                flags=flags,
                method=method,
                packed_nbytes=packed,
                nbytes=nbytes,
                header_offset=offset,
            )
        )
        at += 46 + name_n + extra_n + comment_n
    return tuple(members)


def _wide(extra: bytes, nbytes: int, packed: int, offset: int) -> tuple[int, int, int]:
    """The 64-bit sizes of extra field 1, in the order of the fields that are saturated (APPNOTE 4.5.3)."""
    if 0xFFFFFFFF not in (nbytes, packed, offset):
        return nbytes, packed, offset
    at = 0
    while at + 4 <= len(extra):
        kind, n = struct.unpack("<HH", extra[at : at + 4])
        if kind == 1:
            numbers = [v for (v,) in struct.iter_unpack("<Q", extra[at + 4 : at + 4 + n // 8 * 8])]
            wide = [numbers.pop(0) if v == 0xFFFFFFFF and numbers else v for v in (nbytes, packed, offset)]
            return wide[0], wide[1], wide[2]
        at += 4 + n
    return nbytes, packed, offset


def _doubts(members: tuple[Member, ...], end: int, directory_end: int, tail: bytes, at: int) -> list[str]:
    doubts: list[str] = []
    seen: dict[str, str] = {}
    for member in members:
        folded = member.name.lower()
        if folded in seen and len(doubts) < 5:
            other = seen[folded]
            same = "twice" if other == member.name else f"also as {other[:80]}"
            doubts.append(f"the member {member.name[:80]} occurs {same}")
        seen.setdefault(folded, member.name)
    prefixes = {m.name.partition("/")[0] for m in members}
    if len(prefixes) > 1 and members:
        doubts.append(f"members lie under {len(prefixes)} different top folders")
    if end != directory_end:
        doubts.append(f"{abs(directory_end - end):,} bytes lie between the directory and its end record")
    if members and min(m.header_offset for m in members) > 0:
        doubts.append(f"{min(m.header_offset for m in members):,} bytes lie before the first member")
    if tail.count(_END) > 1:
        doubts.append("there is a second end record: two archives in one file")
    return doubts


def find_member(directory: Directory, name: str) -> Member | None:
    """The first in the directory, letter case ignored, as torch ignores it."""
    folded = name.lower()
    return next((m for m in directory.members if m.name.lower() == folded), None)


def payload_offsets(source: ByteSource, members: list[Member]) -> list[int | None]:
    """Where each member's bytes begin: behind its local header, whose own lengths count. None where there is none."""
    inside = [m for m in members if m.header_offset + 30 <= source.size]
    raws = source.read_many((m.header_offset, 30) for m in inside)
    offsets: dict[int, int | None] = {}
    for member, raw in zip(inside, raws, strict=True):
        name_n, extra_n = struct.unpack("<HH", raw[26:30])
        good = raw[:4] == _LOCAL
        offsets[member.header_offset] = member.header_offset + 30 + name_n + extra_n if good else None
    return [offsets.get(m.header_offset) for m in members]
