"""Several files under relative names: a directory, or an archive of one. Nothing is ever extracted.

A name that a file mentions is only looked up here, among the names that are there: it is never used as a path.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from inspector.checkpoint.source import ByteSource, PathSource
from inspector.errors import LimitExceeded, ReadError
from inspector.limits import Limits

_MOST_LEVELS = 8


class Folder(Protocol):
    """Files by relative name, "/" between the levels on every system."""

    @property
    def name(self) -> str:
        """What to call it in messages."""
        ...

    @property
    def kind(self) -> str:
        """What it is: "folder", "zip archive", "tar archive"."""
        ...

    def files(self) -> Mapping[str, int]:
        """Every regular file and its length in bytes, sorted by name. Raises LimitExceeded over `Limits.members`."""
        ...

    def top(self) -> Mapping[str, int]:
        """The same for the files directly in it, without a look into its folders."""
        ...

    def size_of(self, path: str) -> int | None:
        """Length of one file; None when there is none of that name, or the name leads outside."""
        ...

    def open(self, path: str) -> ByteSource:
        """The bytes of one file. Raises ReadError when there is none of that name, or the name leads outside."""
        ...

    def is_linked_out(self, path: str) -> bool:
        """Whether one file is a symbolic link to a place outside that is no download cache of its own: whose bytes are
        raw numbers to a reader could then be any file of this machine."""
        ...


def leads_outside(path: str) -> bool:
    """Whether a relative name could mean anything but a file below the folder, on any system."""
    parts = path.split("/")
    return (
        not path
        or len(path) > 4096
        or "\\" in path
        or "\x00" in path
        or ":" in parts[0]
        # Windows takes ".. " and "..." for "..".
        or any(not part.rstrip(". ") for part in parts)
    )


def escapes(path: str) -> bool:
    """Of a name that `leads_outside` refuses: whether a program that takes it as it is writes out of the folder. The
    others ("a/../b", "http://x") stay below it, under a name on which programs differ."""
    parts = path.replace("\\", "/").split("/")
    if not path or "\x00" in path or not parts[0] or re.match("[A-Za-z]:", path):
        return True
    level = 0
    for part in parts:
        dots = not part.rstrip(". ") and part.count(".")
        level += -1 if dots and dots > 1 else 0 if dots or not part else 1
        if level < 0:
            return True
    return False


class DirectoryFolder:
    """A directory on this machine.

    Symbolic links to files are followed, because download caches are made of them; linked directories are not.
    """

    kind = "folder"

    def __init__(self, path: str | os.PathLike[str], limits: Limits, name: str = "") -> None:
        self.path = Path(os.path.abspath(os.fspath(path)))
        self.limits = limits
        self.name = name or self.path.name or str(self.path)
        self._files: dict[str, int] | None = None
        self._top: dict[str, int] | None = None

    def files(self) -> Mapping[str, int]:
        if self._files is None:
            found: dict[str, int] = {}
            for here, folders, names in os.walk(self.path, onerror=self._not_listed, followlinks=False):
                inside = Path(here).relative_to(self.path)
                folders[:] = sorted(f for f in folders if len(inside.parts) < _MOST_LEVELS)
                above = f"{inside.as_posix()}/" if inside.parts else ""
                for name in names:
                    # What the walk came to lies inside: of many files that is most of what `size_of` asks.
                    size = None if leads_outside(above + name) else _size_at(os.path.join(here, name))  # noqa: PTH118
                    if size is not None:
                        found[above + name] = size
                    if len(found) > self.limits.members:
                        raise LimitExceeded(f"{self.name} holds more than {self.limits.members:,} files.")
            self._files = dict(sorted(found.items()))
        return self._files

    def _not_listed(self, error: OSError) -> None:
        """A folder inside that is closed to us, or just gone, is passed over; what is not listed for another reason
        is not called empty."""
        if error.filename == str(self.path) or error.errno not in (errno.EACCES, errno.EPERM, errno.ENOENT):
            raise self._refusal(error) from error

    def _refusal(self, error: OSError) -> ReadError:
        return ReadError(f"{self.name} cannot be listed: {error.strerror or error}.")

    def top(self) -> Mapping[str, int]:
        if self._top is None:
            found: dict[str, int] = {}
            try:
                names = [place.name for place in self.path.iterdir()]
            except OSError as error:
                raise self._refusal(error) from error
            if len(names) > self.limits.members:
                raise LimitExceeded(f"{self.name} holds more than {self.limits.members:,} files.")
            for name in sorted(names):
                size = None if leads_outside(name) else _size_at(str(self.path / name))
                if size is not None:
                    found[name] = size
            self._top = found
        return self._top

    def size_of(self, path: str) -> int | None:
        if leads_outside(path):
            return None
        place = self.path / path
        try:
            if "/" in path and not place.parent.resolve().is_relative_to(self.path.resolve()):
                return None
            return place.stat().st_size if place.is_file() else None
        except (OSError, ValueError):
            return None

    def open(self, path: str) -> ByteSource:
        if self.size_of(path) is None:
            raise ReadError(f"{self.name} has no file {path[:200]!r}.")
        return PathSource(self.path / path, path)

    def is_linked_out(self, path: str) -> bool:
        place = self.path / path
        if not place.is_symlink():
            return False
        target = place.resolve()
        # The cache of huggingface_hub: models--x/snapshots/<revision>/ links into models--x/blobs/.
        cache = next((p.parent for p in self.path.resolve().parents if p.name == "snapshots"), None)
        return not (
            target.is_relative_to(self.path.resolve()) or (cache is not None and target.parent == cache / "blobs")
        )


def _size_at(where: str) -> int | None:
    try:
        status = os.stat(where)  # noqa: PTH116 - a text, of many files
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


class SubFolder:
    """One folder inside another, under the names that its files have there. files: them, where they are known."""

    def __init__(self, folder: Folder, path: str, name: str = "", files: dict[str, int] | None = None) -> None:
        self.folder = folder
        self.path = path
        self.kind = folder.kind
        self.name = name or f"{folder.name}/{path}"
        self._files = files

    def files(self) -> Mapping[str, int]:
        if self._files is None:
            start = f"{self.path}/"
            self._files = {p[len(start) :]: n for p, n in self.folder.files().items() if p.startswith(start)}
        return self._files

    def top(self) -> Mapping[str, int]:
        return {path: nbytes for path, nbytes in self.files().items() if "/" not in path}

    def size_of(self, path: str) -> int | None:
        return None if leads_outside(path) else self.folder.size_of(f"{self.path}/{path}")

    def open(self, path: str) -> ByteSource:
        if leads_outside(path):
            raise ReadError(f"{self.name} has no file {path[:200]!r}.")
        return self.folder.open(f"{self.path}/{path}")

    def is_linked_out(self, path: str) -> bool:
        return self.folder.is_linked_out(f"{self.path}/{path}")
