"""The members of a tar archive, from its headers alone: nothing is extracted, nothing is linked to.

Where readers of tar differ this follows Python's tarfile, which torch 0.1 used and most people unpack with.
Source: POSIX.1-2001 pax and ustar; the GNU tar manual, "Basic Tar Format".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from inspector.checkpoint.source import ByteSource
from inspector.errors import CorruptFile, LimitExceeded
from inspector.limits import Limits

BLOCK = 512
_EXTENSION_NBYTES = 1 << 20  # One long name or pax header; real ones have a few hundred bytes.
_NAME_NBYTES = 4096
_LISTED = 20
_MOST_LINKS = 1000
_FILES = frozenset(b"0\x007")
_WITHOUT_DATA = frozenset(b"123456")
_KINDS = {0x31: "a hard link", 0x32: "a symbolic link", 0x33: "a device", 0x34: "a device", 0x36: "a pipe"}
_SPARSE = "is a sparse file"
# Counting extensions. A header is 512 bytes, so that this many are 50 MB; archives of data sets have more.
_MOST_HEADERS = 100_000
_ASCII = bytes(range(128))
_END = bytes(BLOCK)
_MEMBER_NBYTES = 350
_PADDING_NBYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TarMember:
    """One regular file. name: as written. offset: of its first byte in the archive. nbytes: as declared, which may
    reach behind the end of a cut archive."""

    name: str
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TarDirectory:
    """members: regular files in their order. left_out: (name, why) of links, devices and others, the first few;
    left_out_count: of how many; unread: how many of them hold bytes that are not read; outside: how many lead out of
    the folder that the archive is unpacked into.
    doubts: what is wrong with the archive, in words; stops: something lies behind what could be read.

    links: (name, what it points to, whether it is a hard one, how many members come before), the first thousand.
    """

    members: tuple[TarMember, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    left_out_count: int = 0
    unread: int = 0
    outside: int = 0
    stops: bool = False
    doubts: tuple[str, ...] = ()
    links: tuple[tuple[str, str, bool, int], ...] = ()


@dataclass(slots=True)
class _Next:
    """What extension headers say about the file that follows."""

    name: bytes | None = None
    nbytes: int | None = None
    sparse: bool = False
    target: bytes | None = None


def is_tar(head: bytes) -> bool:
    """Whether the first 512 bytes are a tar header: their checksum fits. head: at least 512 bytes, else False."""
    return len(head) >= BLOCK and any(head[:BLOCK]) and _checksum_fits(head[:BLOCK])


@dataclass(slots=True)
class _Listing:
    """A `TarDirectory` in the making; fields as there."""

    source: ByteSource
    limits: Limits
    members: list[TarMember] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    left_out_count: int = 0
    unread: int = 0
    outside: int = 0
    stops: bool = False
    doubts: list[str] = field(default_factory=list)
    links: list[tuple[str, str, bool, int]] = field(default_factory=list)
    headers: int = 0
    names_nbytes: int = 0

    def stop(self, doubt: str) -> None:
        """Nothing behind this place is read."""
        self.stops = True
        self.doubts.append(doubt)

    def header(self, head: bytes, at: int) -> int | None:
        """The size that a header declares, None where nothing behind it can be read."""
        if head == _END:
            if _goes_on(self.source, at):
                self.stop(f"more than zeros lie behind its end at byte {at:,}; that was not read")
            return None
        if not _checksum_fits(head):
            if not self.headers:
                name = self.source.name
                raise CorruptFile(f"{name} is no tar archive: the checksum of its first header does not fit.")
            self.stop(f"the header at byte {at:,} has a wrong checksum; nothing behind it was read")
            return None
        self.headers += 1
        del self.doubts[_LISTED:]  # The first say enough, and a crafted archive could have one for every header.
        most = min(self.limits.members, _MOST_HEADERS)
        if self.headers > most:
            name = self.source.name
            raise LimitExceeded(f"{name} holds more than {most:,} files.", hint="Pack the checkpoint alone.")
        declared = _number(head[124:136])
        if declared is None:
            self.stop(f"the header at byte {at:,} has no size that can be read; nothing behind it was read")
        return declared

    def named(self, raw: bytes) -> str:
        """A member's name, paid for."""
        name = raw[:_NAME_NBYTES].decode("utf-8", "backslashreplace")
        self.names_nbytes += len(name)
        # Listed here, by their folders' names, and sorted.
        self.limits.charge(
            _MEMBER_NBYTES + 2 * len(name) * (1 if name.isascii() else 4), f"The list of files of {self.source.name}"
        )
        most = self.limits.header_nbytes
        if self.names_nbytes > most:
            raise LimitExceeded(f"{self.source.name} holds more than {most:,} bytes of file names.")
        return name

    def add(self, head: bytes, at: int, nbytes: int, ahead: _Next) -> int:
        """List what a header describes. at: behind it. Returns where the next header stands."""
        kind, data = head[156], at
        raw = _plain_name(head) if ahead.name is None else ahead.name
        name = self.named(raw)
        why = "has a name that is too long" if len(raw) > _NAME_NBYTES else ""
        if kind == ord("S"):
            data, why = _behind_sparse_map(self.source, head, data), _SPARSE
        elif ahead.sparse:
            why = _SPARSE
        elif kind in _WITHOUT_DATA:
            if nbytes:
                doubt = f"{name[:80]} is no file but declares {nbytes:,} bytes, which readers of tar treat apart"
                self.doubts.append(doubt)
            nbytes = 0
            why = f"is {_KINDS[kind]}" if kind in _KINDS else ""
        target = ""
        if kind in b"12":
            raw = head[157:257].partition(b"\x00")[0] if ahead.target is None else ahead.target
            target = raw[:_NAME_NBYTES].decode("utf-8", "backslashreplace")
            if link_leads_outside(name, target, is_hard=kind == 0x31):
                why += " that leads outside the archive"
                self.outside += 1
        if why:
            self._leave_out(name, why, kind, target)
        elif not (kind == 0x35 or (kind == 0 and name.endswith("/"))):
            self.members.append(TarMember(name=name, offset=data, nbytes=nbytes))
            there = max(0, self.source.size - data)
            if there < nbytes:
                self.doubts.append(f"it is cut short inside {name[:80]}: {there:,} of {nbytes:,} bytes are there")
        return data + _padded(nbytes)

    def _leave_out(self, name: str, why: str, kind: int, target: str) -> None:
        self.left_out_count += 1
        self.unread += kind not in _WITHOUT_DATA
        if len(self.left_out) < _LISTED:
            self.left_out.append((name, why))
        if kind in b"12" and len(self.links) < _MOST_LINKS:
            self.links.append((name, target, kind == 0x31, len(self.members)))

    def directory(self) -> TarDirectory:
        return TarDirectory(
            members=tuple(self.members),
            left_out=tuple(self.left_out),
            left_out_count=self.left_out_count,
            unread=self.unread,
            outside=self.outside,
            stops=self.stops,
            doubts=tuple(self.doubts),
            links=tuple(self.links),
        )


def read_tar_directory(source: ByteSource, limits: Limits) -> TarDirectory:
    """The regular files of a tar archive, in their order, what was left out and what is doubtful.

    A name may occur twice. Raises CorruptFile when it does not begin as a tar, LimitExceeded over `Limits.members`.
    """
    listing, ahead = _Listing(source, limits), _Next()
    at = 0
    while at + BLOCK <= source.size:
        head = source.read(at, BLOCK)
        declared = listing.header(head, at)
        if declared is None:
            break
        kind, data = head[156], at + BLOCK
        if kind in b"xXLgK":
            _extend(source, kind, data, declared, ahead, listing.doubts)
            at = data + _padded(declared)
            continue
        at = listing.add(head, data, declared if ahead.nbytes is None else ahead.nbytes, ahead)
        ahead = _Next()
    if 0 < source.size - at < BLOCK and any(source.read(at, source.size - at)):
        listing.doubts.append(f"it is cut short inside a header: {source.size - at} of {BLOCK} bytes are there")
    return listing.directory()


def _goes_on(source: ByteSource, at: int) -> bool:
    """Whether the first megabyte behind the end is anything but padding."""
    return any(source.read(at, min(source.size - at, _PADDING_NBYTES)))


def link_leads_outside(name: str, target: str, *, is_hard: bool) -> bool:
    """Whether a link of that name leads out of the folder that an archive is unpacked into, on any system.

    A hard link names a member, a symbolic one a path from where it lies.
    """
    if target.startswith(("/", "\\")) or target[1:2] == ":":
        return True
    steps = [] if is_hard else name.replace("\\", "/").split("/")[:-1]
    depth = 0
    for step in [*steps, *target.replace("\\", "/").split("/")]:
        depth += 0 if step in ("", ".") else -1 if step == ".." else 1
        if depth < 0:
            return True
    return False


def _padded(nbytes: int) -> int:
    return -(-nbytes // BLOCK) * BLOCK


def _checksum_fits(head: bytes) -> bool:
    told = _number(head[148:156])
    if told is None:
        return False
    rest = head[:148] + head[156:]
    unsigned = 256 + sum(rest)
    # Some old programs summed signed characters.
    return told == unsigned or told == unsigned - 256 * len(rest.translate(None, _ASCII))


def _number(field: bytes) -> int | None:
    """Octal text, or GNU's base 256 where the first bit is set; None when it is neither, or negative.

    As lenient as tarfile, which takes "0o17" and "1_7" too: what is no tar here must be none for torch either.
    """
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    try:
        told = int(field.partition(b"\x00")[0].decode("ascii").strip() or "0", 8)
    except ValueError:
        return None
    return told if told >= 0 else None


def _plain_name(head: bytes) -> bytes:
    name = head[:100].partition(b"\x00")[0]
    prefix = head[345:500].partition(b"\x00")[0] if head[257:263] == b"ustar\x00" else b""
    return prefix + b"/" + name if prefix else name


def _behind_sparse_map(source: ByteSource, head: bytes, at: int) -> int:
    """Where the data of an old GNU sparse file begin: behind further blocks of its map."""
    more = head[482] != 0
    while more and at + BLOCK <= source.size:
        more = source.read(at + 504, 1) != b"\x00"
        at += BLOCK
    return at


def _extend(source: ByteSource, kind: int, at: int, nbytes: int, ahead: _Next, doubts: list[str]) -> None:
    """Take over what a long-name or pax header says about the next file."""
    if nbytes > _EXTENSION_NBYTES or at + nbytes > source.size:
        doubts.append(f"the extension header at byte {at - BLOCK:,} declares {nbytes:,} bytes and was not read")
        return
    raw = source.read(at, nbytes)
    if kind == ord("L"):
        ahead.name = raw.partition(b"\x00")[0]
        return
    if kind == ord("K"):
        ahead.target = raw.partition(b"\x00")[0]
        return
    records = _pax(raw)
    if records is None:
        doubts.append(f"the pax header at byte {at - BLOCK:,} is malformed and was ignored")
        return
    if kind == ord("g"):
        if records.keys() & {b"path", b"size"}:
            doubts.append(
                "a global pax header gives a path or a size, which readers of tar treat apart; it was ignored"
            )
        return
    ahead.sparse = ahead.sparse or any(key.startswith(b"GNU.sparse.") for key in records)
    ahead.name = records.get(b"path", ahead.name)
    ahead.target = records.get(b"linkpath", ahead.target)
    size = records.get(b"size")
    if size is not None:
        if len(size) <= 20 and size.isdigit():
            ahead.nbytes = int(size)
        else:
            doubts.append(f"the pax header at byte {at - BLOCK:,} gives a size that is no number; it was ignored")


def _pax(raw: bytes) -> dict[bytes, bytes] | None:
    """Records "length key=value\\n", where length counts the whole record; None when one does not fit."""
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(raw) and raw[at]:
        space = raw.find(b" ", at, at + 8)
        digits = raw[at:space] if space > at else b""
        end = at + int(digits) if digits.isdigit() else -1
        if not space < end <= len(raw) or raw[end - 1] != 0x0A:
            return None
        key, equals, value = raw[space + 1 : end - 1].partition(b"=")
        if not equals:
            return None
        found[key] = value
        at = end
    return found
