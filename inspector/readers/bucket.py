"""An object in a bucket, or a prefix of several, opened by ranges: for the operator's own addresses alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint
from inspector.errors import LimitExceeded, ReadError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.readers.ahead import Ahead
from inspector.readers.entry import FolderPeek, Peek
from inspector.readers.folder import Folder, SubFolder, leads_outside
from inspector.readers.folders.sharded.layout import INDEX_NAME
from inspector.readers.hub.choice import choose
from inspector.readers.opening import ReaderOpening
from inspector.remote.buckets import BucketFile, BucketSource, is_bucket_address, list_bucket

__all__ = ["is_bucket_address", "open_bucket"]


class BucketFolder:
    """The objects below a prefix, as `inspector.readers.folder.Folder`."""

    kind = "folder"

    def __init__(self, prefix: str, files: Sequence[BucketFile]) -> None:
        self.name = prefix.rstrip("/").rpartition("/")[2]
        start = f"{prefix.rstrip('/')}/"
        self._listed = {file.address[len(start) :]: file for file in files if file.address.startswith(start)}
        self._ahead: Ahead[BucketSource] = Ahead(self._listed, lambda path: self._listed[path].open())

    def files(self) -> Mapping[str, int]:
        return {path: file.size for path, file in self._listed.items()}

    def top(self) -> Mapping[str, int]:
        return {path: nbytes for path, nbytes in self.files().items() if "/" not in path}

    def size_of(self, path: str) -> int | None:
        file = None if leads_outside(path) else self._listed.get(path)
        return file.size if file is not None else None

    def open(self, path: str) -> ByteSource:
        if self.size_of(path) is None:
            raise ReadError(f"{self.name} has no file {path[:200]!r}.")
        return self._ahead.open(path)

    def is_linked_out(self, path: str) -> bool:
        return False

    def close(self) -> None:
        """End what fetches ahead."""
        self._ahead.close()


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
        return _open(BucketFolder(above, list_bucket(f"{above}/")), one.name, opening)
    folder = BucketFolder(address, files)
    best = choose(folder.files()).best
    return _open(folder, best.path if best is not None and best.has_index else "", opening)


def _open(folder: BucketFolder, index: str, opening: ReaderOpening) -> Checkpoint:
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
