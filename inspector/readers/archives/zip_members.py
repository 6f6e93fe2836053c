"""The members of a zip archive: the entries of its directory, and where and how the bytes of each lie.

Source: PKWARE APPNOTE 6.3.9, sections 4.3 to 4.5.
"""

from __future__ import annotations

import itertools
import stat
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from inspector.checkpoint.source import ByteSource
from inspector.errors import CorruptFile
from inspector.limits import Limits

# What a member takes beside its name: the record, four numbers, the head of a text.
_MEMBER_NBYTES = 300
_CHARGED_AT_ONCE = 1024
ENTRY = b"PK\x01\x02"
_LOCAL = b"PK\x03\x04"
# Of an entry: flags, method, checksum, packed and plain size, lengths of name, extra and comment, attributes, offset.
_FIELDS = struct.Struct("<8xHH4xIIIHHH4xII")
_FULL = 0xFFFFFFFF
_ENCRYPTED = 0x1
_STORED, _DEFLATED = 0, 8
_TRIED_NBYTES = 1 << 16
_INFLATED_NBYTES = 1 << 20
_MOST_TRIED = 1000
_ALIGNED = 64  # torch's own alignment of a member's bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One entry of the directory. Sizes in bytes; header_offset: of its local header in the file. crc: as written.

    mode: as Unix programs write it, 0 from others. plain: marked as encrypted, and not encrypted.
    """

    name: str
    flags: int
    method: int
    packed_nbytes: int
    nbytes: int
    header_offset: int
    crc: int = 0
    mode: int = 0
    plain: bool = False

    @property
    def encrypted(self) -> bool:
        """The encryption flag, which torch refuses."""
        return bool(self.flags & _ENCRYPTED)

    @property
    def is_link(self) -> bool:
        """A symbolic link: its content is what it points to."""
        return stat.S_ISLNK(self.mode)


def parse_members(
    source: ByteSource, raw: bytes, count: int, limits: Limits, shift: int = 0
) -> tuple[tuple[Member, ...], int]:
    """The members, and where in the directory the last of them ends. shift: what every offset is moved by."""
    members: list[Member] = []
    at = charged = 0
    taken = len(raw)
    for number in range(count):
        if not number % _CHARGED_AT_ONCE:
            limits.charge(taken - charged, f"The directory of {source.name}")
            charged = taken
        if raw[at : at + 4] != ENTRY or at + 46 > len(raw):
            limits.spend(-charged)
            raise CorruptFile(
                f"The directory of {source.name} breaks off after {len(members):,} of {count:,} members.",
                hint="Download or copy it again.",
            )
        flags, method, crc, packed, nbytes, name_n, extra_n, comment_n, attributes, offset = _FIELDS.unpack_from(
            raw, at
        )
        name = raw[at + 46 : at + 46 + name_n].decode("utf-8", "backslashreplace")
        taken += _MEMBER_NBYTES + len(name) * (1 if name.isascii() else 4)
        if nbytes == _FULL or packed == _FULL or offset == _FULL:
            extra = raw[at + 46 + name_n : at + 46 + name_n + extra_n]
            nbytes, packed, offset = _wide(extra, nbytes, packed, offset)
        members.append(
            Member(
                name=name,
                flags=flags,
                method=method,
                packed_nbytes=packed,
                nbytes=nbytes,
                header_offset=offset + shift,
                crc=crc,
                mode=attributes >> 16,
            )
        )
        at += 46 + name_n + extra_n + comment_n
    limits.charge(taken - charged, f"The directory of {source.name}")
    limits.spend(-len(raw))
    return tuple(members), at


def _wide(extra: bytes, nbytes: int, packed: int, offset: int) -> tuple[int, int, int]:
    """The 64-bit sizes of extra field 1, in the order of the fields that are saturated (APPNOTE 4.5.3)."""
    at = 0
    while at + 4 <= len(extra):
        kind, n = struct.unpack("<HH", extra[at : at + 4])
        if kind == 1:
            numbers = [v for (v,) in struct.iter_unpack("<Q", extra[at + 4 : at + 4 + n // 8 * 8])]
            wide = [numbers.pop(0) if v == _FULL and numbers else v for v in (nbytes, packed, offset)]
            return wide[0], wide[1], wide[2]
        at += 4 + n
    return nbytes, packed, offset


def fold(name: str) -> str:
    """Without letter case as miniz has it, in ASCII alone: the Kelvin sign is no k."""
    return name.lower() if name.isascii() else name.encode().lower().decode()


def payload_offsets(source: ByteSource, members: list[Member]) -> list[int | None]:
    """Where each member's bytes begin: behind its local header, whose own lengths count. None where there is none."""
    return [offset for offset, _ in payload_heads(source, members, 0)]


def payload_heads(source: ByteSource, members: list[Member], n: int = 2) -> list[tuple[int | None, bytes]]:
    """The same with the first n bytes of each member as they are stored, in one reading for all of usual padding."""
    inside = [m for m in members if m.header_offset + 30 <= source.size]
    # torch pads a header by up to 64 bytes and the field that says so.
    wanted = [30 + (len(m.name.encode()) + 68 + n if n else 0) for m in inside]
    raws = source.read_many(
        (m.header_offset, min(w, source.size - m.header_offset)) for m, w in zip(inside, wanted, strict=True)
    )
    found: dict[int, tuple[int | None, bytes]] = {}
    for member, raw in zip(inside, raws, strict=True):
        name_n, extra_n = struct.unpack("<HH", raw[26:30])
        begin = 30 + name_n + extra_n
        offset = member.header_offset + begin
        if raw[:4] != _LOCAL:
            found[member.header_offset] = (None, b"")
        elif not n or begin + n <= len(raw) or offset + n > source.size:
            found[member.header_offset] = (offset, raw[begin : begin + n])
        else:
            found[member.header_offset] = (offset, source.read(offset, n))
    return [found.get(m.header_offset, (None, b"")) for m in members]


def calculated_offsets(members: Sequence[Member], directory_start: int, wanted: Sequence[Member]) -> list[int] | None:
    """Where members begin in an archive that torch wrote, without a look at their own headers: at the next 64 bytes
    behind the header and its padding field. None where one of them would not end right before the next one.

    Source: caffe2/serialize/inline_container.cc (getPadding); torch.serialization calculates storages' places likewise.
    """
    ordered = sorted(members, key=lambda m: m.header_offset)
    starts = [*(m.header_offset for m in ordered), directory_start]
    ends = dict(itertools.pairwise(starts))
    found: list[int] = []
    for member in wanted:
        begin = member.header_offset + 30 + len(member.name.encode()) + 4
        if member.nbytes >= _FULL or member.header_offset >= _FULL:
            begin += 4 + 16 * (member.nbytes >= _FULL) + 8 * (member.header_offset >= _FULL)
        offset = -(-begin // _ALIGNED) * _ALIGNED
        # Behind the bytes lies nothing, or their checksum and sizes once more, of 32 or 64 bits.
        if member.method != _STORED or ends[member.header_offset] - offset - member.nbytes not in (0, 16, 24):
            return None
        found.append(offset)
    return found


def member_head(source: ByteSource, member: Member, n: int) -> bytes:
    """The first n bytes of a member's content at most; b"" where it cannot be read."""
    (offset,) = payload_offsets(source, [member])
    if offset is None or member.method not in (_STORED, _DEFLATED) or (member.encrypted and not member.plain):
        return b""
    raw = source.read(offset, max(0, min(member.packed_nbytes, source.size - offset, n)))
    try:
        return raw if member.method == _STORED else zlib.decompressobj(-15).decompress(raw, n)
    except zlib.error:
        return b""


def with_false_flags(source: ByteSource, members: tuple[Member, ...]) -> tuple[Member, ...]:
    """The members, those that are marked as encrypted and are not as such.

    The flag alone makes some tools pass over a member that others, which ignore it, read.
    """
    flagged = [member for member in members if member.encrypted][:_MOST_TRIED]
    if not flagged:
        return members
    offsets = payload_offsets(source, flagged)
    plain = {
        member.header_offset
        for member, offset in zip(flagged, offsets, strict=True)
        if offset is not None and _is_plain(source, member, offset)
    }
    return tuple(replace(m, plain=True) if m.encrypted and m.header_offset in plain else m for m in members)


def _is_plain(source: ByteSource, member: Member, offset: int) -> bool:
    """Whether a member can be read without a password: an encrypted one has 12 bytes more, and does not inflate."""
    there = max(0, min(member.packed_nbytes, source.size - offset))
    if member.method == _STORED:
        return member.packed_nbytes == member.nbytes and there == member.packed_nbytes
    if member.method != _DEFLATED or not there:
        return False
    raw = source.read(offset, min(there, _TRIED_NBYTES))
    try:
        made = zlib.decompressobj(-15).decompress(raw, min(member.nbytes + 1, _INFLATED_NBYTES))
    except zlib.error:
        return False
    whole = len(raw) == there and member.nbytes < _INFLATED_NBYTES
    return zlib.crc32(made) == member.crc and len(made) == member.nbytes if whole else bool(made)
