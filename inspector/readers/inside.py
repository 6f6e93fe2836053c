"""What lies in a file of files, whatever it is: for who must look at every member, not only at the checkpoint in it.

Opening shows the one checkpoint of an archive. A scan has to answer for all the rest as well: members beside it, junk
of other systems, the second of two members of one name, what another program would find in the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from inspector.checkpoint.packed_source import packing_of
from inspector.checkpoint.source import ByteSource
from inspector.errors import InspectorError, ReadError
from inspector.findings import Finding, FindingKind, Severity
from inspector.limits import Limits
from inspector.readers.archives.archive_folder import ArchiveFolder, zip_folder
from inspector.readers.archives.tar_directory import is_tar
from inspector.readers.archives.zip_directory import ends_as_archive, read_directory
from inspector.readers.entry import Peek
from inspector.readers.folder import Folder, SubFolder, escapes, leads_outside
from inspector.readers.formats.packed import (
    ARCHIVE_DOUBTS,
    LEADS_OUTSIDE,
    archive_folder,
    cut_stream,
    folder_root,
    observe_archive,
    unpacked_source,
)
from inspector.readers.opening import detect_format, peek_at
from inspector.readers.unpickle.nested.hidden_pickles import buried_pickle, search_directory
from inspector.units import counted

PROGRAM_INSIDE = FindingKind("program-inside", Severity.NOTICE, "The archive holds programs")
STRAY_MEMBERS = FindingKind("stray-members", Severity.INFO, "Members that no loader of the format reads")

# What the readers of torch's archives follow themselves: pickles, storages by their numbers, code. numpy's: arrays.
_READ_OF_NUMPY = re.compile(r"\.npy$", re.IGNORECASE)
_READ = re.compile(
    r"\.(debug_)?pkl$|\.py$|(^|/)(data|tensors|constants|weights|\.data)/([^/]+/)*(\w+_)?\d+(\.storage)?$"
    r"|(^|/)(version|byteorder|archive_format|archive_version|extern_modules|python_version|serialization_id"
    r"|\.format_version|\.storage_alignment|\.debug_pkl)$",
    re.IGNORECASE,
)


_PROGRAMS = (".py", ".sh", ".bat", ".ps1", ".js", ".lua", ".rb", ".pl", ".r")
# TorchScript's own code, and that of torch.package: their readers show it.
_CODE = re.compile(r"(^|/)(code|\.data)/")
_LISTED = 20
# How a second member of one name is told from the first (`ArchiveFolder.set_aside`).
_AT_BYTE = re.compile(r" \(at byte [\d,]+\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """names: of the members, as they are opened. root: what stands before the names of a checkpoint's parts.

    findings: what is wrong with the archive itself. open: the bytes of one member; raises a ReadError.
    close: lets go of a member's bytes. folder: the same members as a folder. stream: instead of members, what comes out
    of a compressed file that opens as what is in it. notes: on what is in the archive and does nothing by itself.
    of_member: what is wrong with a member as one of this archive: its name.
    """

    names: Sequence[str] = ()
    root: str = ""
    findings: tuple[Finding, ...] = ()
    open: Callable[[str], ByteSource]
    close: Callable[[str], None]
    folder: Folder | None = None
    stream: ByteSource | None = None
    notes: tuple[Finding, ...] = ()
    strays: bool = False
    of_member: Callable[[str], tuple[Finding, ...]] = lambda _: ()


def _nothing(name: str) -> ByteSource:
    raise ReadError(f"There is no member {name[:200]}.")


def look_inside(source: ByteSource, limits: Limits, *, at_end: bool) -> Inside | None:
    """The members of a file of files; None for any other, and for torch's and numpy's own archives, whose readers look
    at all members themselves. at_end: whether an archive behind something else counts.

    Raises a ReadError where it is one and cannot be read.
    """
    peek = peek_at(source, limits)
    packing = packing_of(peek.head)
    if packing is not None:
        inside = unpacked_source(source, packing, limits)
        cut = (cut_stream(inside, source.name),) if inside.trouble else ()
        return Inside(findings=cut, open=_nothing, close=lambda _: None, stream=inside)
    if not peek.is_zip and not is_tar(peek.head):
        return _at_the_end(peek) if at_end else None
    reader = detect_format(source, limits=limits)
    if peek.is_zip and peek.directory is None:
        return None  # Its reader says so.
    # A reader refuses an archive for one encrypted member; the others can be looked at.
    refused = peek.directory is not None and any(member.encrypted for member in peek.directory.members)
    if reader is None or reader[0].id == "packed" or refused:
        return _of_folder(archive_folder(peek), _of_directory(peek))
    read = _READ_OF_NUMPY if reader[0].id == "npz" else _READ
    if peek.directory is None:
        return None
    # Its reader said what is wrong with the archive; at an address each member's own header would be a request.
    folder = zip_folder(source, peek.directory, peek.limits, observed=False)
    return _beside(folder, read, _of_directory(peek))


def holds_files(source: ByteSource, limits: Limits) -> bool:
    """Whether it is an archive of files, compressed or not. Reads headers alone; what cannot be read is none."""
    try:
        inside = look_inside(source, limits, at_end=False)
        if inside is not None and inside.stream is not None:
            inside = look_inside(inside.stream, limits, at_end=False)
        return inside is not None and bool(inside.names)
    except InspectorError:
        return False


def _at_the_end(peek: Peek) -> Inside | None:
    """A zip archive behind something else, which zipfile opens wherever it begins."""
    if not ends_as_archive(peek.source):
        return None
    try:
        directory = read_directory(peek.source, peek.limits)
    except ReadError:
        return None
    return _of_folder(zip_folder(peek.source, directory, peek.limits)) if directory.members else None


def _of_directory(peek: Peek) -> tuple[Finding, ...]:
    """A pickle in a zip archive's comments or extra fields."""
    found = search_directory(peek.source, peek.directory, peek.limits) if peek.directory is not None else None
    if found is None:
        return ()
    place = f"{peek.source.name[-80:]}, in a comment or an extra field of the archive,"
    remedy = "No ordinary program keeps a pickle there. Nothing was run here."
    return (buried_pickle(found, place, remedy=remedy),)


def _beside(folder: ArchiveFolder, read: re.Pattern[str], found: tuple[Finding, ...]) -> Inside | None:
    """The members of torch's or numpy's own archive that its reader does not read."""
    names = [name for name in folder.members if not read.search(name)]
    notes = found + tuple(_note_strays(names)) + tuple(_note_programs(folder))
    if not names and not notes:
        return None
    return Inside(names=names, open=folder.open, close=folder.let_go, notes=notes, strays=True)


def _of_folder(folder: ArchiveFolder, found: tuple[Finding, ...] = ()) -> Inside:
    root: Folder = folder_root(folder) if folder.members else folder
    prefix = ""
    while isinstance(root, SubFolder):
        prefix = f"{root.path}/{prefix}"
        root = root.folder
    return Inside(
        names=(*folder.members, *folder.aside),
        root=prefix,
        findings=tuple(observe_archive(folder)),
        open=folder.open,
        close=folder.let_go,
        folder=folder,
        notes=found + tuple(_note_programs(folder)),
        of_member=_of_names(folder),
    )


def _of_names(folder: ArchiveFolder) -> Callable[[str], tuple[Finding, ...]]:
    """What is wrong with the name of one member."""
    twins = {_AT_BYTE.sub("", name) for name in folder.aside if _AT_BYTE.search(name)}

    def observe(name: str) -> tuple[Finding, ...]:
        bare = _AT_BYTE.sub("", name)
        found: list[Finding] = []
        if name in folder.aside and leads_outside(bare):
            found.append(
                LEADS_OUTSIDE.found(
                    f"Its name leads out of the folder that {folder.name[-80:]} is unpacked into.",
                    subjects=(bare[:200],),
                    remedy="A program that unpacks it without care writes it elsewhere. Nothing was written here.",
                )
                if escapes(bare)
                else ARCHIVE_DOUBTS.found(
                    "Programs unpack a file of this name to different places.", subjects=(bare[:200],)
                )
            )
        if bare in twins:
            found.append(
                ARCHIVE_DOUBTS.found(
                    f"Another member of {folder.name[-80:]} has the same name: some programs take the first of them, "
                    "others the last.",
                    subjects=(bare[:200],),
                )
            )
        return tuple(found)

    return observe


def _note_programs(folder: ArchiveFolder) -> Iterator[Finding]:
    names = [name for name in folder.members if name.lower().endswith(_PROGRAMS)]
    if names and not any(_CODE.search(name) for name in names):
        yield PROGRAM_INSIDE.found(
            f"{folder.name} holds {counted(len(names), 'program file')}, first {names[0][:80]}. They are text: "
            "opening the archive runs nothing of them, and what they do was not looked at.",
            subjects=tuple(name[:200] for name in names[:_LISTED]),
            evidence=(("files", len(names)),),
            remedy="Read them before you serve or import them.",
        )


def _note_strays(names: Sequence[str]) -> Iterator[Finding]:
    if names:
        yield STRAY_MEMBERS.found(
            f"Neither torch nor numpy reads {counted(len(names), 'member')} of the archive, first "
            f"{names[0][:80]}: inert for them, whatever it says.",
            subjects=tuple(name[:200] for name in names[:_LISTED]),
            evidence=(("members", len(names)),),
            remedy="Each was looked at by its content; what is more than data has a line of its own.",
        )
