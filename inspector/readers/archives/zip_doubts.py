"""Where the members of an archive are not what its directory says, so that two tools read two contents.

What each tool makes of it was measured with torch 2.15 and Python 3.11 (tests/readers/test_archives.py). Of ordinary
archives nothing is read here but the main pickle's bytes, for their checksum.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Sequence

from inspector.checkpoint.inflating import inflated
from inspector.checkpoint.source import ByteSource, is_distant
from inspector.errors import RefusedContent
from inspector.readers.archives.zip_directory import Directory
from inspector.readers.archives.zip_members import Member
from inspector.units import counted

_LOCAL = b"PK\x03\x04"
_DESCRIPTOR = 0x8
# Encrypted, patched data, strong encryption, masked headers: miniz refuses a member, or for the last the archive.
_REFUSED_FLAGS = 0x1 | 0x20 | 0x40 | 0x2000
_METHODS = (0, 8)
_MOST_PICKLES = 16
_MOST_GAPS = 64
_MOST_HEADERS = 1000
_SUMMED_NBYTES = 64 * 1024 * 1024
_CHUNK_NBYTES = 1 << 20
# What lies between two members of torch.save: a descriptor of up to 24 bytes, and padding in the next one's header.
_USUAL_GAP = 24
_PADDING = 68


def member_doubts(source: ByteSource, directory: Directory, main: Member) -> list[str]:
    """Sentences, without a full stop, about members that do not agree with the directory or with each other."""
    members = directory.members
    pickles = [main, *(m for m in members if m is not main and m.name.lower().endswith(".pkl"))][:_MOST_PICKLES]
    found = _flags(members)
    found += _methods(members)
    found += _places(source, directory)
    for member in pickles:
        found += _header(source, member)
    found += _checksums(source, members, pickles)
    return found


def refuse_encrypted(name: str, members: Sequence[Member], kind: str = "archive") -> RefusedContent:
    """The error for an archive with members that are marked as encrypted; it tells a mark that is not true."""
    plain = [member.name for member in members if member.plain]
    if not plain:
        return RefusedContent(
            f"{name} is an encrypted {kind}.", hint="Unpack it with its password first, then open it."
        )
    return RefusedContent(
        f"{name} is an encrypted {kind} by its flags alone: {plain[0][:80]} is marked as encrypted, and its bytes are "
        "plain.",
        hint="torch stops at the mark; programs that do not look at it read the member. Get the file again from its "
        "source; `scan` of its folder says what is in it.",
    )


def _flags(members: Sequence[Member]) -> list[str]:
    flagged = [m for m in members if m.flags & _REFUSED_FLAGS]
    if not flagged:
        return []
    return [
        f"{counted(len(flagged), 'member is', 'members are')} marked as encrypted or patched, first "
        f"{flagged[0].name[:80]}: other tools stop there, torch only where it needs the member"
    ]


def _methods(members: Sequence[Member]) -> list[str]:
    odd = [m for m in members if m.method not in _METHODS]
    if not odd:
        return []
    return [
        f"{odd[0].name[:80]} is compressed by method {odd[0].method}, which other tools may know and torch does not"
    ]


def _places(source: ByteSource, directory: Directory) -> list[str]:
    """Members that lie in each other, and members between them that the directory does not list."""
    members = directory.members
    overlaps = [
        following.name[:80]
        for this, following in itertools.pairwise(sorted(members, key=lambda m: m.header_offset))
        if following.header_offset < _least_end(this) and this.header_offset + 30 < source.size
    ]
    unlisted = unlisted_members(source, directory)
    found = [f"{overlaps[0]} lies inside another member"] if overlaps else []
    return found + ([f"a member {unlisted[0]} lies between the others and is not in the directory"] if unlisted else [])


def _least_end(member: Member) -> int:
    """Where a member ends at the earliest: the local header's extra field, which pads, is not counted."""
    return member.header_offset + 30 + len(member.name.encode()) + member.packed_nbytes


def unlisted_members(source: ByteSource, directory: Directory) -> list[str]:
    """Names of members that lie before, between or behind those of the directory: readers from the front see them."""
    found: list[str] = []
    looked = 0
    ordered = sorted(directory.members, key=lambda m: m.header_offset)
    if ordered and ordered[0].header_offset > 30:
        found.append(_first_name(source, 0, ordered[0].header_offset))
    ends = [*(m.header_offset for m in ordered[1:]), directory.start]
    # Across a network, a gap that torch's padding explains is not worth a request.
    usual = _USUAL_GAP + (_PADDING if is_distant(source) else 0)
    for this, end in zip(ordered, ends, strict=False):
        if end > _least_end(this) + usual and looked < _MOST_GAPS:
            looked += 1
            found.append(_between(source, this, end))
    return [name for name in found if name]


def header_doubts(source: ByteSource, members: Sequence[Member]) -> list[str]:
    """Where the first thousand members' own headers contradict the directory, which readers from the front believe."""
    return [doubt for member in members[:_MOST_HEADERS] for doubt in _header(source, member)]


def _between(source: ByteSource, this: Member, until: int) -> str:
    """The name of a member in the gap behind `this`, "" when there is none."""
    if this.header_offset + 30 > source.size:
        return ""
    name_n, extra_n = struct.unpack("<HH", source.read(this.header_offset + 26, 4))
    at = this.header_offset + 30 + name_n + extra_n + this.packed_nbytes
    return _first_name(source, at, until)


def _first_name(source: ByteSource, at: int, until: int) -> str:
    """The name in the first local header of a stretch, "" when there is none."""
    if until - at < 30 or until > source.size:
        return ""
    gap = source.read(at, min(until - at, 4096))
    start = gap.find(_LOCAL)
    if start < 0 or start + 30 > len(gap):
        return ""
    (length,) = struct.unpack("<H", gap[start + 26 : start + 28])
    return gap[start + 30 : start + 30 + length][:80].decode("utf-8", "backslashreplace") or "without a name"


def _header(source: ByteSource, member: Member) -> list[str]:
    """What the local header of a pickle says otherwise than the directory, which torch alone believes."""
    if member.header_offset + 30 > source.size:
        return []
    raw = source.read(member.header_offset, 30)
    if raw[:4] != _LOCAL:
        return []
    flags, method = struct.unpack("<HH", raw[6:10])
    packed, nbytes, name_n = struct.unpack("<IIH", raw[18:28])
    start = member.header_offset + 30
    name = source.read(start, min(name_n, source.size - start)).decode("utf-8", "backslashreplace")
    shown = member.name[:80]
    found = []
    if name != member.name:
        found.append(f"{shown} is called {name[:80]} in its own header, where zipfile stops and torch does not")
    if method != member.method:
        found.append(f"{shown} is compressed by method {member.method} for the directory, {method} for its own header")
    if (flags ^ member.flags) & _REFUSED_FLAGS:
        found.append(f"{shown} is marked as encrypted in only one of its two headers")
    sizes = (packed, nbytes)
    if not flags & _DESCRIPTOR and 0xFFFFFFFF not in sizes and sizes != (member.packed_nbytes, member.nbytes):
        found.append(f"{shown} has {member.nbytes:,} bytes for the directory, {nbytes:,} for its own header")
    return found


def _checksums(source: ByteSource, members: Sequence[Member], pickles: Sequence[Member]) -> list[str]:
    # torch.serialization.set_crc32_options(False) writes 0 everywhere, and zipfile then reads nothing.
    if not any(m.crc for m in members if m.nbytes):
        return []
    wrong, left = [], _SUMMED_NBYTES
    for member in pickles:
        left -= max(member.nbytes, member.packed_nbytes)
        if left >= 0 and not _sum_holds(source, member):
            wrong.append(member.name[:80])
    if not wrong:
        return []
    # A server that says neither when a file was changed nor by a tag what it is may have changed it between requests.
    changed = ", unless the file was changed at its address while it was read" if is_distant(source) else ""
    return [f"the checksum of {wrong[0]} is wrong{changed}: zipfile stops there, torch does not look"]


def _sum_holds(source: ByteSource, member: Member) -> bool:
    """Whether the checksum is right; True for what is too long or cannot be read, which others say."""
    if member.header_offset + 30 > source.size:
        return True
    name_n, extra_n = struct.unpack("<HH", source.read(member.header_offset + 26, 4))
    at = member.header_offset + 30 + name_n + extra_n
    if at + member.packed_nbytes > source.size or member.method not in _METHODS:
        return True
    inflater = zlib.decompressobj(-15) if member.method == 8 else None
    total, left = 0, member.nbytes + 1
    for place in range(at, at + member.packed_nbytes, _CHUNK_NBYTES):
        data = source.read(place, min(_CHUNK_NBYTES, at + member.packed_nbytes - place))
        try:
            for part in inflated(inflater, data, _CHUNK_NBYTES) if inflater else (data,):
                total = zlib.crc32(part[:left], total)
                left -= len(part)
                if left <= 0:
                    break
        except zlib.error:
            return True
        if left <= 0:
            break
    return total == member.crc
