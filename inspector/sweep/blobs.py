"""Where a store's files lie: small named objects that are written whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from inspector.errors import ExportError, ReadError, UsageError
from inspector.new_files import WRITING, new_file
from inspector.side_files import reason_of, shown_name

# What a disk says that can take no more.
_FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def still_whole(*, full: bool) -> str:
    """What to do about a place that was not written. full: it has no room."""
    return f"What it holds is whole; run the same again once {'there is room' if full else 'it can be written'}."


def is_full(error: OSError) -> bool:
    """Whether there is no room."""
    return error.errno in _FULL_DISK


class NoBlob(ReadError):
    """There is no object of that name."""


class Blobs(Protocol):
    """Objects by name, `folder/name`. Each is whole once it has its name. distant: each costs a round trip."""

    distant: bool

    @property
    def shown(self) -> str:
        """What to call the place in messages."""
        ...

    def names(self, folder: str) -> list[str]:
        """Of the objects below a folder, sorted; none where there is no such folder. Raises ReadError."""
        ...

    def holds_others(self) -> bool:
        """Whether anything at all is at the place. Raises ReadError, UsageError where it can be no place of objects."""
        ...

    def read(self, name: str) -> bytes:
        """Raises NoBlob where it is not there, ReadError where it cannot be read."""
        ...

    def read_each(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """(name, bytes) of several, in their order. Raises as `read`."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Replaces what has the name. Raises ExportError."""
        ...


class FolderBlobs:
    """In a folder of a disk."""

    distant = False

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        self.shown = shown_name(self.root)

    def names(self, folder: str) -> list[str]:
        try:
            entries = list(os.scandir(self.root / folder))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ReadError(f"The store {self.shown} cannot be listed: {reason_of(error)}.") from error
        # A name with a dot in front is a file that somebody is still writing.
        return sorted(f"{folder}/{entry.name}" for entry in entries if not entry.name.startswith("."))

    def holds_others(self) -> bool:
        try:
            # Another driver may just be making the store.
            return any(not place.name.startswith(WRITING) for place in self.root.iterdir())
        except FileNotFoundError:
            return False
        except NotADirectoryError as error:
            raise UsageError(
                f"{self.shown} is no folder.", hint="Name an empty or a new folder for the store."
            ) from error
        except OSError as error:
            raise ReadError(f"The store {self.shown} cannot be listed: {reason_of(error)}.") from error

    def read(self, name: str) -> bytes:
        try:
            return (self.root / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NoBlob(f"The store {self.shown} cannot be read: {name}: {reason_of(error)}.") from error
        except OSError as error:
            raise ReadError(f"The store {self.shown} cannot be read: {name}: {reason_of(error)}.") from error

    def read_each(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        for name in names:
            yield name, self.read(name)

    def write(self, name: str, data: bytes) -> None:
        place = self.root / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with new_file(place) as temporary:
                temporary.write_bytes(data)
        except OSError as error:
            raise ExportError(
                f"The store {self.shown} cannot be written: {reason_of(error)}.",
                hint=still_whole(full=is_full(error)),
            ) from error
