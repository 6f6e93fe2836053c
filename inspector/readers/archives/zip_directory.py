"""A zip's central directory, read as torch's own reader (miniz) reads it.

zipfile and miniz disagree on crafted archives: about duplicate names, case, data before the archive, and second
archives. torch reads what this reads; where another tool would read something else, that is said.
Source: PKWARE APPNOTE 6.3.9, sections 4.3 and 4.5.
"""

from __future__ import annotations

import stat
import struct
import zlib
from bisect import bisect_right
from dataclasses import dataclass, replace

from inspector.checkpoint.source import ByteSource
from inspector.errors import CorruptFile, LimitExceeded
from inspector.limits import Limits

_TAIL_NBYTES = 65536 + 22
_MOST_ENDS = 8
_MOST_PLACES = 64
# Other directories are read for what they name, not for their size.
_RIVAL_NBYTES = 1 << 21
_MOST_RIVALS = 4
# What a member takes beside its name: the record, four numbers, the head of a text.
_MEMBER_NBYTES = 300
_CHARGED_AT_ONCE = 1024
_END = b"PK\x05\x06"
_END64 = b"PK\x06\x06"
_LOCATOR64 = b"PK\x06\x07"
_ENTRY = b"PK\x01\x02"
_LOCAL = b"PK\x03\x04"
# Of an entry: flags, method, checksum, packed and plain size, lengths of name, extra and comment, attributes, offset.
_FIELDS = struct.Struct("<8xHH4xIIIHHH4xII")
_FULL = 0xFFFFFFFF
_ENCRYPTED = 0x1
_STORED, _DEFLATED = 0, 8
_TRIED_NBYTES = 1 << 16
_INFLATED_NBYTES = 1 << 20
_MOST_TRIED = 1000


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """members: in directory order. doubts: why torch and other tools may read different content. start: its first byte.

    rivals: what another reader may take for the members, each with the way in which it finds them.
    """

    members: tuple[Member, ...]
    doubts: tuple[str, ...]
    trailing_nbytes: int
    start: int = 0
    rivals: tuple[tuple[str, tuple[Member, ...]], ...] = ()


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
    ends = [at]
    while len(ends) < _MOST_ENDS and (at := tail.rfind(_END, 0, at)) >= 0:
        ends.append(at)
    first: CorruptFile | None = None
    for moved in (False, True):
        for at in ends:
            try:
                return _directory_at(source, tail, start, at, limits, moved=moved)
            except CorruptFile as error:
                first = first or error
    raise first or NoDirectory(f"{source.name} is a zip archive without its directory.")


def _directory_at(source: ByteSource, tail: bytes, start: int, at: int, limits: Limits, *, moved: bool) -> Directory:
    """The directory that the end record at tail[at] describes. start: where the tail begins in the file.

    moved: zipfile looks for the directory right before its end record and moves every offset along.
    """
    count, nbytes, offset, comment = struct.unpack("<HIIH", tail[at + 10 : at + 22])
    end_at = start + at
    trailing = source.size - (end_at + 22 + comment)
    plain = (count, nbytes, offset)
    # miniz and zipfile both take the 64-bit record wherever there is one.
    big = _end64(source, end_at)
    (count, nbytes, offset), directory_end = (big[:3], big[3]) if big is not None else (plain, end_at)
    if nbytes > limits.header_nbytes or count > limits.members:
        raise LimitExceeded(f"The directory of {source.name} says {count:,} members in {nbytes:,} bytes.")
    shift = directory_end - (offset + nbytes)
    rivals = Rivals(source, limits)
    if moved:
        found = rivals.read(count, nbytes, offset + shift, shift) if shift > 0 else ()
        if not found:
            raise CorruptFile(f"{source.name} has no directory before its end record.")
        doubt = f"{shift:,} bytes lie before the archive, so that torch cannot open it and zipfile can"
        found = _with_false_flags(source, found)
        return Directory(members=found, doubts=(doubt,), trailing_nbytes=max(0, trailing), start=offset + shift)
    if offset + nbytes > source.size:
        raise CorruptFile(
            f"The directory of {source.name} would end at byte {offset + nbytes:,}, behind the end of the file.",
            hint="Download or copy it again.",
        )
    raw = source.read(offset, nbytes)
    members, rest = _members(source, raw, count, limits)
    ends = _other_ends(source, members, tail, start, at)
    doubts = _doubts(members, offset + nbytes, directory_end, len(ends))
    if shift:
        rivals.add("by its place before the end record", count, nbytes, offset + shift, shift)
    if big is not None and _differs(plain, big[:3]):
        doubts.append("its 32-bit and 64-bit end records disagree")
        rivals.add("by the 32-bit end record", *plain, 0)
    if raw[rest : rest + 4] == _ENTRY:
        doubts.append(f"the directory goes on behind the {count:,} members that its end record counts")
        rivals.add("by reading the directory to its end", -1, nbytes, offset, 0)
    for other in ends:
        rivals.add_end(tail, start, other)
    kept = tuple((why, found) for why, found in rivals.found if found != members)
    return Directory(
        members=_with_false_flags(source, members),
        doubts=tuple(doubts),
        trailing_nbytes=max(0, trailing),
        start=offset,
        rivals=kept,
    )


def _differs(plain: tuple[int, int, int], big: tuple[int, int, int]) -> bool:
    """Whether a field of the 32-bit record that is not saturated says something else."""
    full = (0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    return any(p not in (f, b) for p, b, f in zip(plain, big, full, strict=True))


class Rivals:
    """Other members that one and the same file may be read as."""

    def __init__(self, source: ByteSource, limits: Limits) -> None:
        self.source = source
        self.limits = limits
        self.found: list[tuple[str, tuple[Member, ...]]] = []

    def read(self, count: int, nbytes: int, offset: int, shift: int) -> tuple[Member, ...]:
        """Members of a directory that may not be one; () when it is none. count: -1 for as many as there are."""
        limits = self.limits
        if not 0 < nbytes <= min(limits.header_nbytes, _RIVAL_NBYTES) or count > limits.members or offset < 0:
            return ()
        if offset + nbytes > self.source.size:
            return ()
        raw = self.source.read(offset, nbytes)
        if count < 0:
            count = min(raw.count(_ENTRY), limits.members)
        try:
            members, _ = _members(self.source, raw, count, limits, shift)
        except CorruptFile:
            return ()
        return members

    def add(self, why: str, count: int, nbytes: int, offset: int, shift: int) -> None:
        """Keep what is there, unless it is known already."""
        if len(self.found) >= _MOST_RIVALS:
            return
        members = self.read(count, nbytes, offset, shift)
        if members and all(members != known for _, known in self.found):
            self.found.append((why, members))

    def add_end(self, tail: bytes, start: int, at: int) -> None:
        """The archive of another end record, by the place it names and by its own. start: where the tail begins."""
        count, nbytes, offset = struct.unpack("<HII", tail[at + 10 : at + 20])
        shift = start + at - offset - nbytes
        why = f"by an end record at byte {start + at:,}"
        self.add(why, count, nbytes, offset + shift, shift)
        self.add(why, count, nbytes, offset, 0)


def _other_ends(source: ByteSource, members: tuple[Member, ...], tail: bytes, start: int, taken: int) -> list[int]:
    """Where in the tail other end records stand that lie in no member: in a comment, or of an archive in front.

    One inside a member belongs to an archive that was packed whole, and no tool takes it for the outer one.
    """
    found: list[int] = []
    ordered: list[Member] = []
    at = len(tail)
    for _ in range(_MOST_PLACES):
        at = tail.rfind(_END, 0, at)
        if at < 0 or len(found) >= _MOST_ENDS:
            break
        if at == taken or at + 22 > len(tail):
            continue
        ordered = ordered or sorted(members, key=lambda m: m.header_offset)
        before = bisect_right(ordered, start + at, key=lambda m: m.header_offset)
        last = ordered[before - 1] if before else None
        if last is None or start + at >= _end_of(source, last):
            found.append(at)
    return found


def _end_of(source: ByteSource, member: Member) -> int:
    """Where a member's bytes end, behind a header that may be padded."""
    (offset,) = payload_offsets(source, [member])
    return (member.header_offset + 30 if offset is None else offset) + member.packed_nbytes


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


def _members(
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
        if raw[at : at + 4] != _ENTRY or at + 46 > len(raw):
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


def _doubts(members: tuple[Member, ...], end: int, directory_end: int, ends: int) -> list[str]:
    doubts: list[str] = []
    seen: dict[str, str] = {}
    for member in members:
        folded = fold(member.name)
        if folded in seen and len(doubts) < 5:
            other = seen[folded]
            same = "twice" if other == member.name else f"also as {other[:80]}"
            doubts.append(f"the member {member.name[:80]} occurs {same}")
        seen.setdefault(member.name if folded == member.name else folded, member.name)
    prefixes = {m.name.partition("/")[0] for m in members}
    if len(prefixes) > 1 and members:
        doubts.append(f"members lie under {len(prefixes)} different top folders")
    if end != directory_end:
        doubts.append(f"{abs(directory_end - end):,} bytes lie between the directory and its end record")
    if members and min(m.header_offset for m in members) > 0:
        doubts.append(f"{min(m.header_offset for m in members):,} bytes lie before the first member")
    if ends:
        doubts.append("there is a second end record: two archives in one file")
    return doubts


def _with_false_flags(source: ByteSource, members: tuple[Member, ...]) -> tuple[Member, ...]:
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


def ends_as_archive(source: ByteSource) -> bool:
    """Whether the last 64 kB hold what could be an archive's end record."""
    start = max(0, source.size - _TAIL_NBYTES)
    return _END in source.read(start, source.size - start)


def find_member(directory: Directory, name: str) -> Member | None:
    """The first in the directory, letter case ignored, as torch ignores it."""
    folded, n = fold(name), len(name)
    return next((m for m in directory.members if len(m.name) == n and fold(m.name) == folded), None)


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
