"""Archives of files: zip, tar, and gzip, bzip2 or xz around a tar or one file. Opened where they lie.

Nothing is extracted under a name: a stored member is read in place, a compressed one through `PackedSource`. What an
archive of a folder holds is opened as the folder would be.
"""

from __future__ import annotations

from dataclasses import replace

from inspector.checkpoint.packed_source import PackedSource, Packing, most_unpacked
from inspector.checkpoint.types import Checkpoint
from inspector.errors import UnknownFormat
from inspector.findings import Finding, Severity
from inspector.readers.archives.archive_folder import ArchiveFolder, tar_folder, zip_folder
from inspector.readers.archives.tar_directory import TarDirectory, is_tar
from inspector.readers.entry import Peek, Reader
from inspector.readers.folder import Folder, SubFolder
from inspector.readers.foreign.naming import name_special_zip, name_zip
from inspector.units import counted

_MOST_LEVELS = 4
_PACKINGS = (
    (b"\x1f\x8b\x08", Packing.GZIP, (".gz", ".tgz")),
    (b"BZh", Packing.BZIP2, (".bz2", ".tbz2", ".tbz")),
    (b"\xfd7zXZ\x00", Packing.XZ, (".xz", ".txz")),
)


def _packing(head: bytes) -> Packing | None:
    return next((packing for start, packing, _ in _PACKINGS if head.startswith(start)), None)


def _claims(peek: Peek) -> str:
    packing = _packing(peek.head)
    if packing is not None:
        return f"a {packing} file"
    if peek.directory is not None:
        return f"a zip archive of {counted(len(peek.directory.members), 'member')}"
    return "the header of a tar archive" if is_tar(peek.head) else ""


def _read(peek: Peek) -> Checkpoint:
    packing = _packing(peek.head)
    if packing is not None:
        return _read_packed(peek, packing)
    directory = peek.directory
    if directory is None:
        folder = tar_folder(peek.source, peek.tar or TarDirectory(members=()))
        if not folder.members:
            raise _nothing(folder)
        return _with_notes(peek.open_folder(_root(folder)), folder)
    special = name_special_zip(peek.source, directory)
    if special is not None:
        raise special
    folder = zip_folder(peek.source, directory, peek.limits)
    if not folder.members:
        raise name_zip(peek.source, directory)
    return _with_notes(peek.open_folder(_root(folder)), folder)


def _read_packed(peek: Peek, packing: Packing) -> Checkpoint:
    source = peek.source
    inside = PackedSource(
        source,
        0,
        source.size,
        packing,
        size=None,
        most=most_unpacked(source.size, peek.limits),
        name=_bare(source.name),
    )
    try:
        checkpoint = peek.open_inner(inside)
    except UnknownFormat as error:
        raise UnknownFormat(
            f"{source.name} is a {packing} archive, and there is no checkpoint to open in it: {error.says}",
            hint=error.hint,
        ) from error
    if not inside.trouble:
        return checkpoint
    finding = Finding(
        id="cut-short",
        severity=Severity.ERROR,
        says=f"The {packing} stream of {source.name} ends too early ({inside.trouble[:100]}): {inside.size:,} bytes "
        "came out of it, and what they hold is shown.",
        evidence=(("unpacked_nbytes", inside.size),),
        remedy="Download or copy it again.",
    )
    return replace(checkpoint, findings=(finding, *checkpoint.findings))


def _root(folder: Folder) -> Folder:
    """Where the files lie: most archives of a folder hold that one folder and nothing beside it."""
    paths = list(folder.files())
    for _ in range(_MOST_LEVELS):
        first, slash, _ = paths[0].partition("/")
        if not slash or not all(path.startswith(f"{first}/") for path in paths):
            break
        folder, paths = SubFolder(folder, first, folder.name), [path[len(first) + 1 :] for path in paths]
    return folder


def _bare(name: str) -> str:
    """The name of what is inside: without the ending that says how it is compressed."""
    for _, _, endings in _PACKINGS:
        for ending in endings:
            if name.lower().endswith(ending) and len(name) > len(ending):
                return name[: -len(ending)] + (".tar" if ending.startswith(".t") else "")
    return name


def _nothing(folder: ArchiveFolder) -> UnknownFormat:
    why = f": {folder.left_out[0][0][:80]} {folder.left_out[0][1]}" if folder.left_out else ""
    return UnknownFormat(
        f"{folder.name} is a {folder.kind} without a file that can be opened{why}.",
        hint="Pack the folder again, without links.",
    )


def _with_notes(checkpoint: Checkpoint, folder: ArchiveFolder) -> Checkpoint:
    """What is wrong with the archive, beside what is wrong with the checkpoint in it."""
    found: list[Finding] = []
    if folder.doubts:
        cut = [doubt for doubt in folder.doubts if "cut short" in doubt]
        found.append(
            Finding(
                id="cut-short" if cut else "archive-doubts",
                severity=Severity.ERROR if cut else Severity.WARNING,
                says=f"{folder.name} is no {folder.kind} as programs write it: {'; '.join(folder.doubts[:4])}.",
                evidence=(("doubts", len(folder.doubts)),),
                remedy="Other programs may unpack something else from it. Get it again from its source.",
            )
        )
    if folder.left_out_count:
        name, why = folder.left_out[0]
        found.append(
            Finding(
                id="members-left-out",
                severity=Severity.WARNING,
                says=f"{counted(folder.left_out_count, 'member')} of {folder.name} "
                f"{'was' if folder.left_out_count == 1 else 'were'} left out: {name[:80]} {why}.",
                subjects=tuple(name for name, _ in folder.left_out),
                evidence=(("members", folder.left_out_count),),
                remedy="Nothing was written anywhere. Be careful with what unpacks this archive.",
            )
        )
    return replace(checkpoint, findings=(*found, *checkpoint.findings)) if found else checkpoint


READER = Reader(
    id="packed",
    says="archive of files (zip, tar, gzip, bzip2, xz)",
    suffixes=(".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".gz"),
    claims=_claims,
    read=_read,
)
