"""Opening: from a path, a folder, an address, bytes or any source to a `Checkpoint`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from inspector.checkpoint.source import BufferSource, ByteSource, PathSource
from inspector.checkpoint.types import Checkpoint
from inspector.errors import LimitExceeded, UnknownFormat
from inspector.gc_pause import without_collecting
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.readers.entry import FolderPeek, FolderReader, Opening, Peek, Reader
from inspector.readers.folder import DirectoryFolder, Folder
from inspector.readers.polyglot import deserves_second_look, unlooked_end
from inspector.readers.registry import (
    Shelf,
    Slot,
    beside_metadata,
    contains,
    either,
    has,
    is_archive,
    starts,
    zip_of,
    zip_with,
)
from inspector.readers.siblings import look_around
from inspector.side_files import PathKind, kind_of_path

if TYPE_CHECKING:
    from inspector.readers.remote import RemoteOpened
    from inspector.remote.client import Client

# Order carries meaning: of all zips, a torch.save archive is what the particular ones leave and `packed` the rest;
# a plain pickle is what is left of everything.
READERS: Sequence[Reader] = Shelf(
    Slot("formats.numpy.array", starts(b"\x93NUMPY")),
    Slot("formats.numpy.archive", zip_of(".npy")),
    # A data file is known by its folder or name, a metadata file by a mark behind a pickle's first bytes.
    Slot("formats.dcp_file", either(beside_metadata, contains(b"torch.distributed.checkpoint"))),
    Slot("formats.script.torchscript", zip_with("constants.pkl", "model.json")),
    Slot("formats.export.torch_export", zip_with("archive_format", "serialized_exported_program.json")),
    Slot("formats.torch_package", zip_with(".data/extern_modules")),
    Slot("formats.torch_zip", lambda peek: peek.is_zip),
    Slot("formats.safetensors", has(8, b"{")),
    Slot("formats.torch_legacy", starts(b"\x80", b"L")),
    Slot("formats.torch_tar", is_archive),
    Slot("formats.gguf.file", starts(b"GGUF", b"FUGG")),
    Slot("formats.onnx.file", starts(b"\x08")),
    Slot("formats.shard_index", contains(b'"weight_map"')),
    Slot("formats.packed", either(is_archive, starts(b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"]\x00\x00", b"x"))),
    Slot("formats.plain_pickle"),
)
# From the most particular layout to the least.
FOLDER_READERS: Sequence[FolderReader] = Shelf(
    Slot("folders.deepspeed.reader"),
    Slot("folders.dcp.reader"),
    Slot("folders.dcp.safetensors"),
    Slot("folders.sharded.reader"),
    Slot("folders.peft.reader"),
)
_MOST_LEVELS = 6


def open_source(
    where: str | Path | bytes | ByteSource, *, name: str = "", limits: Limits = DEFAULT_LIMITS
) -> ByteSource:
    """A source over a file's path, an http(s) address, or bytes; a source is passed through.

    Raises ReadError when there is nothing to read there.
    """
    if isinstance(where, bytes):
        return BufferSource(where, name or "these bytes")
    if is_address(where):
        # Imported here: ssl costs more than reading a header does.
        from inspector.readers.remote import own_client
        from inspector.remote.source import HttpSource

        return HttpSource(where, name=name, client=own_client())
    if isinstance(where, str | Path):
        return PathSource(where, name)
    return where


def is_address(where: object) -> TypeGuard[str]:
    """Whether it is the http(s) address of a file, not a path."""
    return isinstance(where, str) and where[:8].lower().startswith(("http://", "https://"))


def is_remote(where: object) -> TypeGuard[str]:
    """Whether it is an address or a place on the hub: what is asked of a server. A bare org/name is one where there is
    no such path here."""
    if is_address(where):
        return True
    if not isinstance(where, str) or "/" not in where:
        return False
    from inspector.readers.hub.place import is_hub_place

    return is_hub_place(where)


@dataclass(frozen=True, kw_only=True)
class ReaderOpening(Opening):
    """Opens by the first reader that claims a file or folder. Of what lies deeper, the peek's own opening knows."""

    limits: Limits
    readers: Sequence[Reader] = READERS
    folder_readers: Sequence[FolderReader] = FOLDER_READERS
    depth: int = 0
    archives: int = 0

    def deeper(self, *, archives: int = 0) -> Opening:
        return replace(self, depth=self.depth + 1, archives=self.archives + archives)

    def file(self, peek: Peek) -> Checkpoint:
        _check_depth(peek.opening.archives, peek.source.name)
        claim = self.claim(peek)
        if claim is None:
            from inspector.readers.not_checkpoints.naming import name_foreign

            raise name_foreign(peek.source, peek.source.name)
        reader, _ = claim
        checkpoint = reader.read(peek)
        if deserves_second_look(peek, reader):
            from inspector.readers.other_loaders import look_otherwise

            checkpoint = look_otherwise(checkpoint, peek, reader)
        unlooked = unlooked_end(peek, reader)
        if unlooked:
            checkpoint = replace(checkpoint, skipped=(*checkpoint.skipped, unlooked))
        return look_around(checkpoint, peek) if not peek.opening.depth else checkpoint

    def folder(self, peek: FolderPeek) -> Checkpoint:
        from inspector.readers.sidecars import add_evidence
        from inspector.readers.single_file import open_single, unread_code

        _check_depth(peek.opening.archives, f"What is in {peek.folder.name}")
        reader = self._claim_folder(peek)
        if reader is not None:
            checkpoint = reader.read(peek)
            # A directory is not walked for what lies beside the files of a layout; an archive's members are known.
            if peek.opening.archives:
                read = {part.name for part in checkpoint.parts if part.opened}
                unread = unread_code(peek, (path for path in peek.folder.files() if path not in read))
                checkpoint = replace(checkpoint, unread=(*checkpoint.unread, *unread))
        else:
            checkpoint = open_single(peek)
        return add_evidence(checkpoint, peek.folder, peek.limits)

    def detect(self, peek: Peek) -> str:
        _check_depth(peek.opening.archives, peek.source.name)
        claim = self.claim(peek)
        return claim[0].id if claim is not None else ""

    def detect_folder(self, peek: FolderPeek) -> str:
        reader = self._claim_folder(peek)
        return reader.id if reader is not None else ""

    def claim(self, peek: Peek) -> tuple[Reader, str] | None:
        """The first reader that claims a file, with its evidence; None when none does."""
        for reader in self.readers.for_file(peek) if isinstance(self.readers, Shelf) else self.readers:
            evidence = reader.claims(peek)
            if evidence:
                return reader, evidence
        return None

    def _claim_folder(self, peek: FolderPeek) -> FolderReader | None:
        return next((reader for reader in self.folder_readers if reader.claims(peek)), None)


def _check_depth(archives: int, name: str) -> None:
    if archives > _MOST_LEVELS:
        raise LimitExceeded(f"{name} lies more than {_MOST_LEVELS} archives deep.", hint="No real checkpoint does.")


def detect_format(
    where: str | Path | bytes | ByteSource, *, limits: Limits = DEFAULT_LIMITS
) -> tuple[Reader, str] | None:
    """The first reader that claims a file, with its evidence; None when none does."""
    opening = ReaderOpening(limits=limits.metered())
    return opening.claim(Peek(open_source(where, limits=limits), opening))


def peek_at(source: ByteSource, limits: Limits = DEFAULT_LIMITS) -> Peek:
    """A source as the readers see it."""
    return Peek(source, ReaderOpening(limits=limits.metered()))


def claims_folder(path: str | Path, *, limits: Limits = DEFAULT_LIMITS) -> str:
    """The id of the format of several files that a folder is, "" when its files are to be read one by one."""
    opening = ReaderOpening(limits=limits.metered())
    return opening.detect_folder(FolderPeek(DirectoryFolder(path, limits), opening))


def open_at(where: str, *, client: Client, limits: Limits = DEFAULT_LIMITS) -> RemoteOpened:
    """What `open_checkpoint` opens behind an address or on the hub, with where it is and by what it is known again.

    client: what may be asked. Raises as `open_checkpoint`.
    """
    from inspector.readers.remote import open_remote

    try:
        found = open_remote(where, ReaderOpening(limits=limits.metered()), client=client)
    except (RecursionError, MemoryError) as error:
        raise LimitExceeded(f"{where[:80]} needs more memory or nesting than this program allows.") from error
    checkpoint = replace(found.checkpoint, origin=replace(found.checkpoint.origin, name=found.title))
    return replace(found, checkpoint=checkpoint)


def open_checkpoint(
    where: str | Path | bytes | ByteSource,
    *,
    name: str = "",
    limits: Limits = DEFAULT_LIMITS,
    readers: Sequence[Reader] = READERS,
    folder_readers: Sequence[FolderReader] = FOLDER_READERS,
    beside: Folder | None = None,
) -> Checkpoint:
    """Read the headers of a checkpoint. Nothing in it is executed and no tensor data is read.

    where: a file, a folder, an http(s) address, a place on the hub (hf://org/name, or org/name where there is no such
    path), bytes, or a source. Files beside a path are looked at where a format is made of several; a source is read
    alone, or with the files `beside` it. name: what to call it in messages, else its base name.
    Raises a ReadError (UnknownFormat, CorruptFile, RefusedContent, LimitExceeded) when there is nothing to show;
    everything else that is wrong is a finding.
    """
    opening = ReaderOpening(limits=limits.metered(), readers=readers, folder_readers=folder_readers)
    path = where if isinstance(where, str | Path) and not is_remote(where) else None
    shown = name
    try:
        # A server may take minutes to answer; other threads should not do without their collector for so long.
        with nullcontext() if is_remote(where) else without_collecting():
            if is_remote(where):
                from inspector.readers.remote import open_remote

                remote = open_remote(where, opening, name=name)
                checkpoint, shown = remote.checkpoint, name or remote.title
            elif path is not None and kind_of_path(path) is PathKind.FOLDER:
                folder = DirectoryFolder(path, limits, name)
                shown = name or folder.name
                checkpoint = opening.folder(FolderPeek(folder, opening))
            else:
                source = open_source(where, name=name, limits=limits)
                shown = name or source.name
                if path is not None:
                    beside = DirectoryFolder(Path(path).parent, limits)
                try:
                    checkpoint = opening.file(Peek(source, opening, beside))
                except Exception:
                    if source is not where:  # Nobody else could let go of it.
                        source.close()
                    raise
    except (RecursionError, MemoryError) as error:
        raise LimitExceeded(
            f"{shown} needs more memory or nesting than this program allows.", hint="No real checkpoint does."
        ) from error
    return replace(checkpoint, origin=replace(checkpoint.origin, name=shown))


def open_below(folder: Folder, *, limits: Limits = DEFAULT_LIMITS) -> Checkpoint:
    """The one checkpoint of several files, as a folder inside an archive holds it. Raises a ReadError as above."""
    opening = ReaderOpening(limits=limits.metered())
    try:
        with without_collecting():
            checkpoint = opening.folder(FolderPeek(folder, opening))
    except (RecursionError, MemoryError) as error:
        raise LimitExceeded(
            f"{folder.name} needs more memory or nesting than this program allows.", hint="No real checkpoint does."
        ) from error
    return replace(checkpoint, origin=replace(checkpoint.origin, name=folder.name))


__all__ = [
    "FOLDER_READERS",
    "READERS",
    "Reader",
    "UnknownFormat",
    "detect_format",
    "open_below",
    "open_checkpoint",
    "open_source",
]
