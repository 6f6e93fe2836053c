"""A zip or tar of files as a folder: each member is opened where it lies, nothing is extracted under a name.

Names that lead outside, links, encrypted members and unknown compressions are left out and said. Of two members of one
name the first counts in a zip, as for torch, and the last in a tar, which replaces what came before; the other is set
aside, for who looks at everything.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from inspector.checkpoint.joined_source import SliceSource
from inspector.checkpoint.packed_source import MOST_NBYTES, PackedSource, Packing, most_unpacked
from inspector.checkpoint.source import ByteSource
from inspector.errors import CorruptFile, LimitExceeded, ReadError
from inspector.limits import Limits
from inspector.readers.archives.tar_directory import TarDirectory, TarMember, link_leads_outside
from inspector.readers.archives.zip_directory import Directory
from inspector.readers.archives.zip_doubts import header_doubts, unlisted_members
from inspector.readers.archives.zip_members import Member, payload_offsets
from inspector.readers.folder import escapes, leads_outside
from inspector.units import counted, human_bytes

_STORED, _DEFLATED = 0, 8
_LISTED = 20
_MOST_MEMBERS = 100_000
_TARGET_NBYTES = 4096
_JUNK = ("__MACOSX/", "PaxHeaders/")
_JUNK_NAMES = (".DS_Store", "Thumbs.db", "desktop.ini")


@dataclass(kw_only=True)
class ArchiveFolder:
    """The files of an archive.

    doubts: what is wrong with it, in words. stops: it goes on behind what was read.
    left_out: (name, why) of the first members that are not shown, left_out_count: of how many. unread: how many of them
    hold bytes that nobody here has looked at; outside: how many lead out of the folder it is unpacked into.
    aside: members that are no file of the folder but have content, for who must look at everything: junk of other
    systems, the second of a name, what another reader of the archive finds instead.
    """

    name: str
    kind: str
    open_member: Callable[[ArchiveFolder, str], ByteSource]
    members: dict[str, Member | TarMember] = field(default_factory=dict)
    aside: dict[str, Member | TarMember] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    left_out_count: int = 0
    unread: int = 0
    outside: int = 0
    stops: bool = False
    unpacked_left: int = MOST_NBYTES
    _opened: dict[str, ByteSource] = field(default_factory=dict)
    _taken: dict[str, int] = field(default_factory=dict)
    _sizes: dict[str, int] | None = None

    def files(self) -> Mapping[str, int]:
        if self._sizes is None:
            self._sizes = {path: member.nbytes for path, member in sorted(self.members.items())}
        return self._sizes

    def top(self) -> Mapping[str, int]:
        return {path: nbytes for path, nbytes in self.files().items() if "/" not in path}

    def size_of(self, path: str) -> int | None:
        return self.members[path].nbytes if path in self.members else None

    def open(self, path: str) -> ByteSource:
        if path not in self.members and path not in self.aside:
            raise ReadError(f"{self.name} has no file {path[:200]!r}.")
        if path not in self._opened:
            self._opened[path] = self.open_member(self, path)
        return self._opened[path]

    def is_linked_out(self, path: str) -> bool:
        return False  # Links are left out.

    def let_go(self, path: str) -> None:
        """Forget the bytes of a member that was opened, and what they took."""
        if self._opened.pop(path, None) is not None:
            self.unpacked_left += self._taken.pop(path, 0)

    def leave_out(self, name: str, why: str, *, unread: bool = False, outside: bool = False) -> None:
        """Remember a member that is not shown."""
        self.left_out_count += 1
        self.unread += unread
        self.outside += outside
        if len(self.left_out) < _LISTED:
            self.left_out.append((name[:200], why))

    def leave_out_by_name(self, name: str, path: str) -> None:
        """Remember a member whose name is no file's of the folder. path: the name without "./" before it."""
        outside = escapes(path)
        why = "leads outside the archive" if outside else "has a name that programs unpack to different places"
        self.leave_out(name, why, outside=outside)

    def set_aside(self, name: str, member: Member | TarMember) -> None:
        """Remember a member that is no file of the folder, under a name of its own."""
        if member.nbytes:
            at = member.header_offset if isinstance(member, Member) else member.offset
            self.aside[f"{name} (at byte {at:,})" if name in self.members or name in self.aside else name] = member

    def member(self, path: str) -> Member | TarMember:
        """One of the folder, or one that was set aside."""
        return self.members[path] if path in self.members else self.aside[path]

    def doubt(self, what: str) -> None:
        """Remember what is wrong with the archive."""
        if len(self.doubts) < _LISTED:
            self.doubts.append(what)


def zip_folder(source: ByteSource, directory: Directory, limits: Limits, *, observed: bool = True) -> ArchiveFolder:
    """The files of a zip; what cannot be opened is left out and said. Raises LimitExceeded over 100,000 members.

    observed: whether it is asked what other readers would find, which reads each member's own header.
    """
    if len(directory.members) > _MOST_MEMBERS:
        raise LimitExceeded(
            f"{source.name} is a zip archive of {len(directory.members):,} files; it is looked through up to "
            f"{_MOST_MEMBERS:,}.",
            hint="Pack the checkpoint alone.",
        )
    folder = ArchiveFolder(name=source.name, kind="zip archive", open_member=_open_in_zip(source, limits))
    taken: list[Member] = []
    for member in directory.members:
        why = _why_not(member)
        path = _relative(member.name)
        if why and member.nbytes:
            folder.leave_out(member.name, why, unread=True)
        elif member.name.endswith("/") or is_junk(member.name):
            folder.set_aside(path, member)
        elif member.is_link:
            why, outside = _link(source, member)
            folder.leave_out(member.name, why, outside=outside)
        elif leads_outside(path):
            folder.leave_out_by_name(member.name, path)
            folder.set_aside(path, member)
        elif path in folder.members:
            folder.doubt(f"{path[:80]} occurs twice; the first is shown, other programs take the last")
            folder.set_aside(path, member)
        else:
            folder.members[path] = member
            taken.append(member)
    if observed:
        _observe_overlaps(folder, taken)
        _observe_rivals(folder, source, directory)
    return folder


def _observe_rivals(folder: ArchiveFolder, source: ByteSource, directory: Directory) -> None:
    """What another reader of the same bytes would find instead, and where the members' own headers say otherwise."""
    # Files lie in the archive's root as they like, and padding of any kind lies behind the directory.
    for doubt in directory.doubts:
        if "top folders" not in doubt and "occurs" not in doubt:
            folder.doubt(doubt)
    known = {member.header_offset for member in directory.members}
    for _, members in directory.rivals:
        for member in members:
            if member.header_offset not in known and not _why_not(member):
                known.add(member.header_offset)
                folder.set_aside(_relative(member.name), member)
    for doubt in header_doubts(source, directory.members):
        folder.doubt(doubt)
    for name in unlisted_members(source, directory):
        folder.leave_out(name, "lies between the others and is not in the archive's directory", unread=True)


def tar_folder(source: ByteSource, directory: TarDirectory) -> ArchiveFolder:
    """The files of a tar."""
    folder = ArchiveFolder(
        name=source.name, kind="tar archive", open_member=_open_in_tar(source), doubts=list(directory.doubts)
    )
    folder.left_out = [(name[:200], why) for name, why in directory.left_out]
    folder.left_out_count = directory.left_out_count
    folder.unread, folder.outside = directory.unread, directory.outside
    folder.stops = directory.stops
    for member in directory.members:
        path = _relative(member.name)
        if is_junk(path):
            folder.set_aside(path, member)
            continue
        if leads_outside(path):
            folder.leave_out_by_name(member.name, path)
            folder.set_aside(path, member)
            continue
        if path in folder.members:
            folder.doubt(f"{path[:80]} occurs twice; the last is shown, as unpacking leaves it")
            folder.set_aside(path, folder.members[path])
        folder.members[path] = member
    return folder


def _relative(name: str) -> str:
    """A member's name without the "./" that `tar -C folder .` writes before each."""
    while name.startswith("./"):
        name = name[2:]
    return name


def is_junk(name: str) -> bool:
    """Whether a member is what an operating system leaves in every folder."""
    base = name.rpartition("/")[2]
    return name.startswith(_JUNK) or base in _JUNK_NAMES or base.startswith("._")


def _why_not(member: Member) -> str:
    if member.encrypted and not member.plain:
        return "is encrypted"
    if member.method not in (_STORED, _DEFLATED):
        return f"is compressed by method {member.method}"
    return ""


def _link(source: ByteSource, member: Member) -> tuple[str, bool]:
    """What a symbolic link is, in words, and whether it leads out of the archive; one that cannot be read may."""
    target = ""
    (offset,) = payload_offsets(source, [member])
    if offset is not None and member.packed_nbytes <= _TARGET_NBYTES and offset + member.packed_nbytes <= source.size:
        raw = source.read(offset, member.packed_nbytes)
        try:
            raw = zlib.decompressobj(-15).decompress(raw, _TARGET_NBYTES) if member.method == _DEFLATED else raw
        except zlib.error:
            raw = b""
        target = raw.decode("utf-8", "backslashreplace")
    outside = not target or link_leads_outside(member.name, target, is_hard=False)
    return f"is a symbolic link{' that leads outside the archive' if outside else ''}", outside


def _open_in_zip(source: ByteSource, limits: Limits) -> Callable[[ArchiveFolder, str], ByteSource]:
    def open_member(folder: ArchiveFolder, path: str) -> ByteSource:
        member = folder.member(path)
        assert isinstance(member, Member)
        (offset,) = payload_offsets(source, [member])
        if offset is None:
            raise CorruptFile(f"{source.name}: the local header of {path[:80]} is not where the directory says.")
        if member.method == _STORED:
            return SliceSource(source, offset, member.packed_nbytes, path)
        if member.nbytes > folder.unpacked_left:
            raise LimitExceeded(
                f"{source.name}: its compressed files unpack to more than {human_bytes(MOST_NBYTES)}.",
                hint="Unpack it yourself and open the folder, or pack it without compression.",
            )
        most = most_unpacked(member.packed_nbytes, limits, folder.unpacked_left)
        made = PackedSource(
            source, offset, member.packed_nbytes, Packing.DEFLATE, size=member.nbytes, most=most, name=path
        )
        folder.unpacked_left -= member.nbytes
        folder._taken[path] = member.nbytes
        return made

    return open_member


def _open_in_tar(source: ByteSource) -> Callable[[ArchiveFolder, str], ByteSource]:
    def open_member(folder: ArchiveFolder, path: str) -> ByteSource:
        member = folder.member(path)
        assert isinstance(member, TarMember)
        # A cut archive's last file is read as far as it goes: its own reader says what is lost.
        there = max(0, min(member.nbytes, source.size - member.offset))
        return SliceSource(source, min(member.offset, source.size), there, path)

    return open_member


def _observe_overlaps(folder: ArchiveFolder, members: list[Member]) -> None:
    """Members that share bytes: how a small archive is made to unpack to a huge one (Fifield 2019)."""
    end, overlaps = 0, 0
    for member in sorted(members, key=lambda m: m.header_offset):
        overlaps += member.header_offset < end
        end = max(end, member.header_offset + 30 + len(member.name) + member.packed_nbytes)
    if overlaps:
        folder.doubt(f"{counted(overlaps, 'member')} share bytes with another one, as in a decompression bomb")
