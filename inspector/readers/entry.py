"""What a reader is: one frozen entry per format, tried in the order of `READERS` and `FOLDER_READERS`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint
from inspector.errors import ReadError
from inspector.limits import Limits
from inspector.readers.archives.tar_directory import TarDirectory, is_tar, read_tar_directory
from inspector.readers.archives.zip_directory import Directory, read_directory
from inspector.readers.folder import Folder

HEAD_NBYTES = 4096
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


class Opening(ABC):
    """What one call of `open_checkpoint` carries along: its limits, and how readers open what lies inside or beside.

    depth: how many archives and folders are open around what is read now; archives: how many of them are archives.
    """

    limits: Limits
    depth: int
    archives: int

    @abstractmethod
    def file(self, peek: Peek) -> Checkpoint:
        """The checkpoint in a file. Raises a ReadError when there is none."""

    @abstractmethod
    def folder(self, peek: FolderPeek) -> Checkpoint:
        """The checkpoint in a folder. Raises a ReadError when there is none."""

    @abstractmethod
    def detect(self, peek: Peek) -> str:
        """The id of the format that a file is claimed as, "" when by none."""

    @abstractmethod
    def detect_folder(self, peek: FolderPeek) -> str:
        """The id of the format of several files that a folder is claimed as, "" when by none."""

    @abstractmethod
    def deeper(self, *, archives: int = 0) -> Opening:
        """The same, one level further in. archives: 1 where that level is an archive."""


class Peek:
    """A file about to be read: its bytes, what its first ones say, and where it lies.

    folder: the files beside it, for formats of several files; None where it came alone (an upload, an address).
    """

    def __init__(self, source: ByteSource, opening: Opening, folder: Folder | None = None) -> None:
        self.source = source
        self.opening = opening
        self.folder = folder

    @property
    def limits(self) -> Limits:
        """How much is believed before anything is allocated."""
        return self.opening.limits

    @cached_property
    def head(self) -> bytes:
        """The first 4096 bytes, fewer if the file is shorter."""
        return self.source.read(0, min(HEAD_NBYTES, self.source.size))

    @property
    def is_zip(self) -> bool:
        """Whether it begins as a zip archive does."""
        return self.head[:4] in _ZIP

    @cached_property
    def directory(self) -> Directory | None:
        """Its zip directory, read once for every reader that asks; None when there is none that can be read."""
        if not self.is_zip:
            return None
        try:
            return read_directory(self.source, self.limits)
        except ReadError:
            return None

    @cached_property
    def tar(self) -> TarDirectory | None:
        """Its members as a tar archive, read once for every reader that asks; None when it does not begin as one.

        Raises LimitExceeded as `read_tar_directory` does.
        """
        return read_tar_directory(self.source, self.limits) if is_tar(self.head) else None

    def open_inner(self, source: ByteSource) -> Checkpoint:
        """The checkpoint in a file inside this one. Raises a ReadError when there is none."""
        return self.opening.file(Peek(source, self.opening.deeper(archives=1)))

    def open_folder(self, folder: Folder) -> Checkpoint:
        """The checkpoint in a folder: packed inside this file, or the one it lies in."""
        return self.opening.folder(FolderPeek(folder, self.opening.deeper(archives=1)))


class FolderPeek:
    """A folder about to be read: a directory, or an archive of files."""

    def __init__(self, folder: Folder, opening: Opening) -> None:
        self.folder = folder
        self.opening = opening

    @property
    def limits(self) -> Limits:
        """How much is believed before anything is allocated."""
        return self.opening.limits

    def detect_inner(self, path: str) -> str:
        """The id of the format that one file of the folder is claimed as, "" when by none or when it cannot be read."""
        try:
            return self.opening.detect(Peek(self.folder.open(path), self.opening.deeper()))
        except ReadError:
            return ""

    def open_inner(self, path: str) -> Checkpoint:
        """The checkpoint in one file of the folder. Raises a ReadError when there is none."""
        return self.opening.file(Peek(self.folder.open(path), self.opening.deeper()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One format of a file.

    id: in `Checkpoint.format`. says: for people. suffixes: usual file name endings, for display; content decides.
    claims: evidence that a file is of this format, "" when it is not; reads little, raises nothing but ReadError.
    read: makes the checkpoint; raises a ReadError when nothing can be shown.
    no_index: why a few ranges of a file that is not all there cannot show what is in it, a clause; "" where an index at
    its head or its end says where everything lies.
    """

    id: str
    says: str
    suffixes: tuple[str, ...]
    claims: Callable[[Peek], str]
    read: Callable[[Peek], Checkpoint]
    no_index: str = "nothing in it says beforehand where its tensors lie"


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderReader:
    """One format of several files. layout: what lies in such a folder, for display. claims, read: as for a Reader."""

    id: str
    says: str
    layout: str
    claims: Callable[[FolderPeek], str]
    read: Callable[[FolderPeek], Checkpoint]
