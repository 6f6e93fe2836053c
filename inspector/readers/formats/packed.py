"""Archives of files: zip, tar, and gzip, bzip2 or xz around a tar or one file. Opened where they lie.

Nothing is extracted under a name: a stored member is read in place, a compressed one through `PackedSource`. What an
archive of a folder holds is opened as the folder would be.
"""

from __future__ import annotations

from dataclasses import replace

from inspector.checkpoint.packed_source import PackedSource, Packing, most_unpacked, packing_of
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint
from inspector.errors import UnknownFormat
from inspector.findings import Finding, FindingKind, Severity
from inspector.limits import Limits
from inspector.readers.archives.archive_folder import ArchiveFolder, tar_folder, zip_folder
from inspector.readers.archives.tar_directory import TarDirectory, is_tar
from inspector.readers.checks.truncation import CUT_SHORT
from inspector.readers.entry import FolderPeek, Peek, Reader
from inspector.readers.finish import with_findings
from inspector.readers.folder import Folder, SubFolder
from inspector.readers.not_checkpoints.naming import name_special_zip, name_zip
from inspector.readers.single_file import unread_code
from inspector.units import counted

MEMBERS_LEFT_OUT = FindingKind(
    "members-left-out", Severity.WARNING, "Members of the archive were left out", also=(Severity.ERROR,)
)
LEADS_OUTSIDE = FindingKind("leads-outside", Severity.ERROR, "Members lead out of the folder that is unpacked into")
ARCHIVE_DOUBTS = FindingKind(
    "archive-doubts", Severity.WARNING, "The archive is not as programs write it", also=(Severity.ERROR,)
)

_MOST_LEVELS = 4
_TOLD = 6
# How the names of compressed files end, and of compressed tars.
_ENDINGS = {
    Packing.GZIP: (".gz", ".tgz"),
    Packing.BZIP2: (".bz2", ".tbz2", ".tbz"),
    Packing.XZ: (".xz", ".txz"),
    Packing.LZMA: (".lzma", ".tlz"),
    Packing.ZLIB: (".z", ".zlib"),
}


def _claims(peek: Peek) -> str:
    packing = packing_of(peek.head)
    if packing is not None:
        return f"a {packing} file"
    if peek.directory is not None:
        return f"a zip archive of {counted(len(peek.directory.members), 'member')}"
    return "the header of a tar archive" if is_tar(peek.head) else ""


def _read(peek: Peek) -> Checkpoint:
    packing = packing_of(peek.head)
    if packing is not None:
        return _read_packed(peek, unpacked_source(peek.source, packing, peek.limits))
    directory = peek.directory
    if directory is not None:
        special = name_special_zip(peek.source, directory)
        if special is not None:
            raise special
    folder = archive_folder(peek)
    if not folder.members:
        raise _nothing(folder) if directory is None else name_zip(peek.source, directory)
    try:
        checkpoint = peek.open_folder(folder_root(folder))
    except UnknownFormat as error:
        if not folder.left_out_count:
            raise
        raise type(error)(f"{error.says} {_left_out(folder)}", hint=error.hint) from error
    # What other programs take for files of it, and what nobody here can read.
    aside = unread_code(FolderPeek(folder, peek.opening.deeper()), folder.aside)
    closed = [
        name for name, why in folder.left_out if why.startswith(("is encrypted", "is compressed", "lies between"))
    ]
    checkpoint = replace(checkpoint, unread=(*checkpoint.unread, *aside, *closed))
    return with_findings(checkpoint, observe_archive(folder))


def unpacked_source(source: ByteSource, packing: Packing, limits: Limits) -> PackedSource:
    """What comes out of a compressed file. Raises as PackedSource does."""
    most = most_unpacked(source.size, limits)
    return PackedSource(source, 0, source.size, packing, size=None, most=most, name=_bare(source.name, packing))


def archive_folder(peek: Peek) -> ArchiveFolder:
    """The files of a zip or tar, whatever they are."""
    if peek.directory is not None:
        return zip_folder(peek.source, peek.directory, peek.limits)
    return tar_folder(peek.source, peek.tar or TarDirectory(members=()))


def _read_packed(peek: Peek, inside: PackedSource) -> Checkpoint:
    source = peek.source
    try:
        checkpoint = peek.open_inner(inside)
    except UnknownFormat as error:
        raise type(error)(
            f"{source.name} is a {inside.packing} archive, and there is no checkpoint to open in it: {error.says}",
            hint=error.hint,
        ) from error
    if not inside.trouble:
        return checkpoint
    return with_findings(checkpoint, [cut_stream(inside, source.name)])


def cut_stream(inside: PackedSource, name: str) -> Finding:
    """The finding about a compressed file that breaks off."""
    return CUT_SHORT.found(
        f"The {inside.packing} stream of {name} ends too early ({inside.trouble[:100]}): {inside.size:,} bytes "
        "came out of it, and what they hold is shown.",
        evidence=(("unpacked_nbytes", inside.size),),
        remedy="Download or copy it again.",
    )


def folder_root(folder: Folder) -> Folder:
    """Where the files lie: most archives of a folder hold that one folder and nothing beside it."""
    paths = list(folder.files())
    for _ in range(_MOST_LEVELS):
        first, slash, _ = paths[0].partition("/")
        if not slash or not all(path.startswith(f"{first}/") for path in paths):
            break
        folder, paths = SubFolder(folder, first, folder.name), [path[len(first) + 1 :] for path in paths]
    return folder


def _bare(name: str, packing: Packing) -> str:
    """The name of what is inside: without the ending that says how it is compressed."""
    for ending in _ENDINGS[packing]:
        if name.lower().endswith(ending) and len(name) > len(ending):
            return name[: -len(ending)] + (".tar" if ending.startswith(".t") else "")
    return name


def _left_out(folder: ArchiveFolder) -> str:
    """What of an archive is not shown, in a sentence."""
    # What would be written elsewhere is told first.
    told = sorted(folder.left_out, key=lambda one: ("leads outside" not in one[1], "link" in one[1]))
    named = "; ".join(f"{name[:80]} {why}" for name, why in told[:_TOLD])
    more = f"; and {folder.left_out_count - _TOLD:,} more" if folder.left_out_count > _TOLD else ""
    return f"Left out: {named}{more}."


def _nothing(folder: ArchiveFolder) -> UnknownFormat:
    why = f": {folder.left_out[0][0][:80]} {folder.left_out[0][1]}" if folder.left_out else ""
    return UnknownFormat(
        f"{folder.name} is a {folder.kind} without a file that can be opened{why}.",
        hint="Pack the folder again, without links.",
    )


def observe_archive(folder: ArchiveFolder) -> list[Finding]:
    """What is wrong with the archive, beside what is wrong with the checkpoint in it."""
    found: list[Finding] = []
    if folder.doubts:
        cut = [doubt for doubt in folder.doubts if "cut short" in doubt]
        found.append(
            (CUT_SHORT if cut else ARCHIVE_DOUBTS).found(
                f"{folder.name} is no {folder.kind} as programs write it: {'; '.join(folder.doubts[:4])}.",
                severity=Severity.ERROR if cut or folder.stops else Severity.WARNING,
                evidence=(("doubts", len(folder.doubts)),),
                remedy="Other programs may unpack something else from it. Get it again from its source.",
            )
        )
    if folder.left_out_count:
        name, why = folder.left_out[0]
        found.append(
            MEMBERS_LEFT_OUT.found(
                f"{counted(folder.left_out_count, 'member')} of {folder.name} "
                f"{'was' if folder.left_out_count == 1 else 'were'} left out: {name[:80]} {why}.",
                severity=Severity.ERROR if folder.unread else Severity.WARNING,
                subjects=tuple(name for name, _ in folder.left_out),
                evidence=(("members", folder.left_out_count), ("unread", folder.unread)),
                remedy="Nothing was written anywhere. Be careful with what unpacks this archive.",
            )
        )
    if folder.outside:
        out = [name for name, why in folder.left_out if "outside" in why]
        found.append(
            LEADS_OUTSIDE.found(
                f"{counted(folder.outside, 'member leads', 'members lead')} out of the folder that {folder.name} "
                f"is unpacked into{f': {out[0][:80]}' if out else ''}.",
                subjects=tuple(out),
                evidence=(("members", folder.outside),),
                remedy="A program that unpacks it without care overwrites or reads what is none of the archive's.",
            )
        )
    return found


READER = Reader(
    id="packed",
    says="archive of files (zip, tar, gzip, bzip2, xz, lzma, zlib)",
    suffixes=(".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".gz"),
    claims=_claims,
    read=_read,
    no_index="every file in it is looked at",
)
