"""Files that a listing names, wherever they lie, as one folder: each is opened where it is, none is looked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from inspector.errors import AddressError, ReadError
from inspector.readers.ahead import Ahead
from inspector.readers.folder import leads_outside
from inspector.remote.ranged import RangedSource


class RemoteFile(Protocol):
    """A file in a bucket, on the hub or at an address, as a listing says it is; it pickles. tag: what changes with its
    content."""

    @property
    def address(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def tag(self) -> str: ...

    def open(self) -> RangedSource:
        """Nothing is fetched before it is read."""
        ...


class ListedFolder:
    """`inspector.readers.folder.Folder` of listed files by their paths in it."""

    kind = "folder"

    def __init__(self, name: str, listed: Mapping[str, RemoteFile]) -> None:
        self.name = name
        self._listed = listed
        self._ahead: Ahead[RangedSource] = Ahead(listed, lambda path: listed[path].open())

    def files(self) -> Mapping[str, int]:
        return {path: file.size for path, file in self._listed.items()}

    def top(self) -> Mapping[str, int]:
        return {path: nbytes for path, nbytes in self.files().items() if "/" not in path}

    def size_of(self, path: str) -> int | None:
        file = None if leads_outside(path) else self._listed.get(path)
        return file.size if file is not None else None

    def open(self, path: str) -> RangedSource:
        if self.size_of(path) is None:
            raise ReadError(f"{self.name} has no file {path[:200]!r}.")
        return self._ahead.open(path)

    def is_linked_out(self, path: str) -> bool:
        return False

    def changed(self) -> bool:
        """Whether any that was opened is another file now, as far as its server says; what it does not say counts."""
        try:
            return any(source.changed() for source in self._ahead.opened())
        except AddressError:
            return True

    def unsent(self) -> tuple[str, ...]:
        """Names of files whose server once did not send what it was asked for."""
        return tuple(sorted({source.name for source in self._ahead.opened() if source.failed}))

    def close(self) -> None:
        """End what fetches ahead."""
        self._ahead.close()
