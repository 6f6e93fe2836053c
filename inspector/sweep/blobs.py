"""Where a store's files lie: small named objects that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from inspector.errors import ExportError, ReadError
from inspector.new_files import new_file
from inspector.side_files import reason_of, shown_name


class Blobs(Protocol):
    """Objects by name, `folder/name`. Each is whole once it has its name."""

    @property
    def shown(self) -> str:
        """What to call the place in messages."""
        ...

    def names(self, folder: str) -> list[str]:
        """Of the objects below a folder, sorted; none where there is no such folder. Raises ReadError."""
        ...

    def read(self, name: str) -> bytes:
        """Raises ReadError where it is not there, or cannot be read."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Replaces what has the name. Raises ExportError."""
        ...


class FolderBlobs:
    """In a folder of a disk."""

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

    def read(self, name: str) -> bytes:
        try:
            return (self.root / name).read_bytes()
        except OSError as error:
            raise ReadError(f"The store {self.shown} cannot be read: {name}: {reason_of(error)}.") from error

    def write(self, name: str, data: bytes) -> None:
        place = self.root / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with new_file(place) as temporary:
                temporary.write_bytes(data)
        except OSError as error:
            raise ExportError(
                f"The store {self.shown} cannot be written: {reason_of(error)}.",
                hint="What it holds is whole; run the same again once there is room.",
            ) from error
