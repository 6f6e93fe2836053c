"""Which pictures lie in which class folder: a folder, or a zip or tar of one, listed as torchvision's ImageFolder does.

Folder names in sorted order are the classes, whatever lies below one is of its class, files are taken by their ending.
Two things are otherwise than there, and said: a class folder without pictures is a class (ImageFolder refuses it unless
`allow_empty`), and hidden folders are none. Nothing is extracted: a member of an archive is read where it lies, and no
name in it is used as a path.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from inspector.errors import LimitExceeded, ReadError, UsageError
from inspector.evaluate.files import HINT, PictureFiles, PicturesPlace, is_picture
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.readers.archives.archive_folder import is_junk
from inspector.readers.folder import DirectoryFolder, Folder
from inspector.side_files import PathKind, kind_of_path, shown_name

MOST_CLASSES = 100_000
_LISTED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What lies there. digest: of all names, lengths and times, so that a change is another data set.

    classes: names of the class folders, sorted. paths: of the pictures, sorted by class and name; labels: of each, the
    position of its class. empty: class folders without a picture. left_out: (name, why) of the first files that are
    none of them, left_out_count: of how many.
    """

    name: str
    digest: str
    classes: tuple[str, ...]
    paths: tuple[str, ...]
    labels: tuple[int, ...]
    empty: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    left_out_count: int = 0


class ClassFolders:
    """An opened set of class folders. listing: what is in it. files: its pictures, as they travel."""

    def __init__(self, files: PictureFiles, listing: Listing) -> None:
        self.files = files
        self.listing = listing
        self._paths = frozenset(listing.paths)

    def read(self, path: str) -> bytes:
        """One picture's file. Raises ReadError for what is not listed, ExplainError for one that is too long."""
        if path not in self._paths:
            raise ReadError(f"{self.listing.name} lists no picture {path[:200]!r}.")
        return self.files.read(path)


def open_class_folders(
    where: Path, *, name: str = "", digest: str = "", follow_links: bool = True, limits: Limits = DEFAULT_LIMITS
) -> ClassFolders:
    """A folder, or an archive, of class folders.

    digest: of the archive's bytes where it is known. follow_links: to files that lie elsewhere, as sets made of links
    have them; not for visitors of a server. Raises ReadError, UsageError where there are no class folders.
    """
    place = PicturesPlace(path=os.path.abspath(where), name=name or shown_name(where), limits=limits)
    if kind_of_path(where) is PathKind.NOTHING:
        raise ReadError(f"There is no folder {place.name}.", hint=HINT)
    files = place.open()
    if isinstance(files.folder, DirectoryFolder):
        return _listed(files, _own_folders(files.folder), follow_links=follow_links)
    stamp = digest or f"{where.stat().st_size} {where.stat().st_mtime_ns}"
    return _listed(files, _folders_in(files.folder), digest=stamp)


def _own_folders(folder: DirectoryFolder) -> dict[str, str]:
    """Folders of a directory, the empty ones too: name -> "", or why it is no class."""
    try:
        with os.scandir(folder.path) as entries:
            return {entry.name: _why_no_class(entry) for entry in entries if entry.is_dir()}
    except OSError as error:
        raise ReadError(f"{folder.name} cannot be listed: {error.strerror or error}.") from error


def _why_no_class(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "is a link to a folder, which is not followed"
    return "is a hidden folder" if entry.name.startswith(".") else ""


def _folders_in(top: Folder) -> dict[str, str]:
    """The same of an archive: by its files, of whatever kind. Folders without any file are not listed in it."""
    names = {path.partition("/")[0] for path in top.files() if "/" in path}
    return {name: "is a hidden folder" if name.startswith(".") else "" for name in names}


def _listed(
    opened: PictureFiles, folders: Mapping[str, str], *, digest: str = "", follow_links: bool = True
) -> ClassFolders:
    folder, name = opened.folder, opened.name
    classes = sorted(one for one, why in folders.items() if not why and not is_junk(f"{one}/"))
    if len(classes) > MOST_CLASSES:
        raise LimitExceeded(f"{name} holds {len(classes):,} folders; class folders are taken up to {MOST_CLASSES:,}.")
    place = {one: number for number, one in enumerate(classes)}
    taken: list[str] = []
    left_out = [(one, why) for one, why in sorted(folders.items()) if why]
    files = folder.files()
    for path in sorted(files, key=_as_walked):
        why = _why_left_out(folder, path, place, follow_links=follow_links)
        if why == "":
            taken.append(path)
        elif why is not None:
            left_out.append((path, why))
    labels = tuple(place[path.partition("/")[0]] for path in taken)
    if not taken:
        raise UsageError(f"{name} holds no pictures in class folders.", hint=HINT)
    filled = set(labels)
    return ClassFolders(
        opened,
        Listing(
            name=name,
            digest=_digest(folder, taken, files, classes, digest),
            classes=tuple(classes),
            paths=tuple(taken),
            labels=labels,
            empty=tuple(one for number, one in enumerate(classes) if number not in filled),
            left_out=tuple((one[:200], why) for one, why in left_out[:_LISTED]),
            left_out_count=len(left_out),
        ),
    )


def _why_left_out(folder: Folder, path: str, classes: Mapping[str, int], *, follow_links: bool) -> str | None:
    """ "" for a picture that is taken, None for what nobody misses."""
    first, slash, _ = path.partition("/")
    if is_junk(path):
        return None
    if not slash:
        return "lies in no class folder"
    if first not in classes:
        return None  # its folder is said
    if not is_picture(path):
        return "is no picture by its ending"
    return "is a link that leads outside" if not follow_links and folder.is_linked_out(path) else ""


def _as_walked(path: str) -> tuple[str, str, str]:
    """As ImageFolder walks: class by class, folder by folder, file by file."""
    above, _, base = path.rpartition("/")
    return path.partition("/")[0], above, base


def _digest(folder: Folder, paths: Iterable[str], sizes: Mapping[str, int], classes: Iterable[str], known: str) -> str:
    """By the archive's own digest, else by each file's length and time."""
    digest = hashlib.sha256(json.dumps([known, list(classes)]).encode())
    for path in paths:
        time = 0
        if isinstance(folder, DirectoryFolder):
            time = (folder.path / path).stat().st_mtime_ns
        digest.update(json.dumps([path, sizes[path], time]).encode())
    return digest.hexdigest()
