"""A zip's central directory, read as torch's own reader (miniz) reads it.

zipfile and miniz disagree on crafted archives: about duplicate names, case, data before the archive, and second
archives. torch reads what this reads; where another tool would read something else, that is said.
Source: PKWARE APPNOTE 6.3.9, sections 4.3 and 4.5.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass, replace

from inspector.checkpoint.source import ByteSource
from inspector.errors import CorruptFile, LimitExceeded
from inspector.limits import Limits
from inspector.readers.archives.zip_members import ENTRY, Member, fold, parse_members, payload_offsets, with_false_flags

# As far from the end torch's reader looks for the end record (zip_end.py).
SEARCHED_NBYTES = 69_584
_MOST_ENDS = 8
_MOST_PLACES = 64
# Other directories are read for what they name, not for their size.
_RIVAL_NBYTES = 1 << 21
_MOST_RIVALS = 4
_END = b"PK\x05\x06"
_END64 = b"PK\x06\x06"
_LOCATOR64 = b"PK\x06\x07"


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """members: in directory order. doubts: why torch and other tools may read different content. start: its first byte.
    end_at: where the last end record begins. astray: that does not say where the directory is, so that torch ends
    there; the directory of an earlier one is shown, or what zipfile finds before it.

    rivals: what another reader may take for the members, each with the way in which it finds them.
    """

    members: tuple[Member, ...]
    doubts: tuple[str, ...]
    trailing_nbytes: int
    start: int = 0
    end_at: int = 0
    astray: bool = False
    rivals: tuple[tuple[str, tuple[Member, ...]], ...] = ()


class NoDirectory(CorruptFile):
    """A zip whose directory is not there: cut short, or never finished."""


def read_directory(source: ByteSource, limits: Limits) -> Directory:
    """Raises NoDirectory when there is no end record, CorruptFile when the directory is damaged."""
    start = max(0, source.size - SEARCHED_NBYTES)
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
                found = _directory_at(source, tail, start, at, limits, moved=moved)
                return replace(found, end_at=start + ends[0], astray=moved or at != ends[0])
            except CorruptFile as error:
                # An error that a frame of its own traceback holds keeps the file open until a collection.
                first = first or error.with_traceback(None)
    try:
        raise first or NoDirectory(f"{source.name} is a zip archive without its directory.")
    finally:
        del first


def _directory_at(source: ByteSource, tail: bytes, start: int, at: int, limits: Limits, *, moved: bool) -> Directory:
    """The directory that the end record at tail[at] describes. start: where the tail begins in the file.

    moved: zipfile looks for the directory right before its end record and moves every offset along.
    """
    count, nbytes, offset, comment = struct.unpack("<HIIH", tail[at + 10 : at + 22])
    end_at = start + at
    trailing = source.size - (end_at + 22 + comment)
    plain = (count, nbytes, offset)
    # miniz and zipfile both take the 64-bit record wherever there is one.
    big = _end64(source, end_at, moved=moved)
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
        found = with_false_flags(source, found)
        return Directory(members=found, doubts=(doubt,), trailing_nbytes=max(0, trailing), start=offset + shift)
    if offset + nbytes > source.size:
        raise CorruptFile(
            f"The directory of {source.name} would end at byte {offset + nbytes:,}, behind the end of the file.",
            hint="Download or copy it again.",
        )
    raw = source.read(offset, nbytes)
    members, rest = parse_members(source, raw, count, limits)
    ends = _other_ends(source, members, tail, start, at)
    doubts = _doubts(members, offset + nbytes, directory_end, len(ends))
    if shift:
        rivals.add("by its place before the end record", count, nbytes, offset + shift, shift)
    if big is not None and _differs(plain, big[:3]):
        doubts.append("its 32-bit and 64-bit end records disagree")
        rivals.add("by the 32-bit end record", *plain, 0)
    if raw[rest : rest + 4] == ENTRY:
        doubts.append(f"the directory goes on behind the {count:,} members that its end record counts")
        rivals.add("by reading the directory to its end", -1, nbytes, offset, 0)
    for other in ends:
        rivals.add_end(tail, start, other)
    kept = tuple((why, found) for why, found in rivals.found if found != members)
    return Directory(
        members=with_false_flags(source, members),
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
            count = min(raw.count(ENTRY), limits.members)
        try:
            members, _ = parse_members(self.source, raw, count, limits, shift)
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


def _end64(source: ByteSource, end_at: int, *, moved: bool) -> tuple[int, int, int, int] | None:
    """moved: zipfile takes the 64-bit record right before its locator, wherever that says it is."""
    if end_at < (76 if moved else 20):
        return None
    locator = source.read(end_at - 20, 20)
    if locator[:4] != _LOCATOR64:
        return None
    (at,) = (end_at - 76,) if moved else struct.unpack("<Q", locator[8:16])
    if at + 56 > source.size:
        return None
    record = source.read(at, 56)
    if record[:4] != _END64:
        return None
    count, nbytes, offset = struct.unpack("<QQQ", record[32:56])
    return count, nbytes, offset, at


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


def ends_as_archive(source: ByteSource) -> bool:
    """Whether the last 70 kB hold what could be an archive's end record."""
    start = max(0, source.size - SEARCHED_NBYTES)
    return _END in source.read(start, source.size - start)


def find_member(directory: Directory, name: str) -> Member | None:
    """The first in the directory, letter case ignored, as torch ignores it."""
    folded, n, last = fold(name), len(name), name[-1:].lower()
    # Of thousands of members few are as long and end so, which is seen without folding all of their names.
    alike = (m for m in directory.members if len(m.name) == n and m.name[-1:].lower() == last)
    return next((m for m in alike if fold(m.name) == folded), None)
