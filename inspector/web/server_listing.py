"""What lies in the folder that the server's owner opened to visitors: walked once, for every box that offers it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from inspector.units import counted

_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
# A box with more is slow to open, and nobody reads it; a folder's table has the rest.
_FILES, _FILES_OF_ONE = 1_000, 100
_FOLDERS = 1_000
# Of a disk with millions of files only the upper part is listed.
_WALKED = 200_000
_KEPT_SECONDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Relative paths, the shallow before the deep; hidden and linked folders are left out.

    files: at most 1,000, and 100 of one folder. folders: that hold files, with a slash behind, the root itself "./".
    archives: by their names. sets: folders that hold folders. count: of all files that were seen. whole: whether the
    walk came to its end. Whatever is not listed can still be named.
    """

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    count: int = 0
    whole: bool = True

    @property
    def says(self) -> str:
        """How many files there are."""
        return f"{self.count:,}" if self.whole else f"more than {self.count:,}"

    def holds(self, folders: Sequence[str]) -> str:
        """What a box offers, in words: "2 folders, 3 archives", and nothing of what there is none of."""
        counts = ((len(folders), "folder"), (len(self.archives), "archive"))
        return ", ".join(counted(n, noun) for n, noun in counts if n) or "none of its files fits"

    @property
    def lists_all(self) -> bool:
        """Whether every file is among `files`."""
        return self.whole and len(self.files) == self.count


@st.cache_data(ttl=_KEPT_SECONDS, max_entries=4, show_spinner=False)
def list_root(root: str) -> Listing:
    """Of the resolved root. Raises nothing: a folder that cannot be listed holds nothing."""
    files: list[str] = []
    folders: list[str] = []
    archives: list[str] = []
    sets: list[str] = []
    count = walked = 0
    left = deque([""])
    while left and walked < _WALKED:
        inside = left.popleft()
        names, below = _names(root, inside)
        walked += len(names) + len(below)
        count += len(names)
        files += [inside + name for name in names[:_FILES_OF_ONE]]
        archives += [inside + name for name in names if name.lower().endswith(_ARCHIVES)]
        if names or not inside:
            folders.append(inside or "./")
        if below and inside:
            sets.append(inside.rstrip("/"))
        left.extend(f"{inside}{name}/" for name in below)
    return Listing(
        files=tuple(files[:_FILES]),
        folders=tuple(folders[:_FOLDERS]),
        archives=tuple(archives[:_FILES]),
        sets=tuple(sets[:_FOLDERS]),
        count=count,
        whole=not left,
    )


def _names(root: str, inside: str) -> tuple[list[str], list[str]]:
    """(files, folders) of one folder by name, sorted; a link counts where it leads to a file below the root."""
    files: list[str] = []
    folders: list[str] = []
    try:
        with os.scandir(Path(root, inside)) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_file(follow_symlinks=False) or (
                    entry.is_symlink() and is_inside(Path(entry.path), Path(root))
                ):
                    files.append(entry.name)
    except OSError:
        return [], []
    return sorted(files), sorted(folders)


def is_inside(path: Path, root: Path) -> bool:
    """Whether it is a regular file whose real place is under the root."""
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return False
    return real.is_relative_to(root) and real.is_file()
