"""An object in a bucket, or a prefix of several, opened by ranges: for the operator's own addresses alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.checkpoint.types import Checkpoint
from inspector.errors import LimitExceeded
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.readers.entry import FolderPeek, Peek
from inspector.readers.folder import Folder, SubFolder
from inspector.readers.folders.sharded.layout import INDEX_NAME
from inspector.readers.hub.choice import choose
from inspector.readers.listed_folder import ListedFolder
from inspector.readers.opening import ReaderOpening
from inspector.remote.buckets import BucketFile, is_bucket_address, list_bucket

__all__ = ["is_bucket_address", "open_bucket"]


def _bucket_folder(prefix: str, files: Sequence[BucketFile]) -> ListedFolder:
    """The objects below a prefix."""
    start = f"{prefix.rstrip('/')}/"
    listed = {file.address[len(start) :]: file for file in files if file.address.startswith(start)}
    return ListedFolder(prefix.rstrip("/").rpartition("/")[2], listed)


def open_bucket(address: str, *, limits: Limits = DEFAULT_LIMITS) -> Checkpoint:
    """The checkpoint at an address in a bucket: one object, an index of shards, or the files below a prefix.

    Raises AddressError for what cannot be listed or had, MissingLibrary without fsspec, and what the readers raise.
    """
    opening = ReaderOpening(limits=limits.metered())
    files = list_bucket(address)
    if len(files) > limits.members:
        raise LimitExceeded(f"{address[:200]} holds more than {limits.members:,} files.")
    if len(files) == 1 and files[0].address == address:
        one, above = files[0], address.rpartition("/")[0]
        if not INDEX_NAME.fullmatch(one.name):
            checkpoint = opening.file(Peek(one.open(), opening))
            return replace(checkpoint, origin=replace(checkpoint.origin, name=one.name))
        return _open(_bucket_folder(above, list_bucket(f"{above}/")), one.name, opening)
    folder = _bucket_folder(address, files)
    best = choose(folder.files()).best
    return _open(folder, best.path if best is not None and best.has_index else "", opening)


def _open(folder: ListedFolder, index: str, opening: ReaderOpening) -> Checkpoint:
    """index: of the shards in it, "" for any other folder."""
    above, _, name = index.rpartition("/")
    try:
        if index:
            beside: Folder = SubFolder(folder, above) if above else folder
            checkpoint = opening.file(Peek(beside.open(name), opening, beside))
        else:
            checkpoint = opening.folder(FolderPeek(folder, opening))
    finally:
        folder.close()
    return replace(checkpoint, origin=replace(checkpoint.origin, name=f"{folder.name}/{above}".rstrip("/")))
