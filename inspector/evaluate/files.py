"""Pictures of a folder or archive, by their names in it: read here, and sent to others as the place where they lie."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from inspector.checkpoint.packed_source import packing_of
from inspector.checkpoint.source import ByteSource, PathSource
from inspector.errors import ExplainError, UnknownFormat
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.readers.archives.archive_folder import ArchiveFolder
from inspector.readers.entry import Peek
from inspector.readers.folder import DirectoryFolder, Folder, SubFolder
from inspector.readers.formats.packed import archive_folder, unpacked_source
from inspector.readers.opening import ReaderOpening
from inspector.side_files import PathKind, kind_of_path
from inspector.units import human_bytes

# torchvision.datasets.folder.IMG_EXTENSIONS.
ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
# A telephone's largest JPEG is a quarter of it.
MOST_PICTURE_NBYTES = 200_000_000
HINT = "A folder for each class with its pictures in it, or a zip or tar of such folders."
_MOST_LEVELS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PicturesPlace:
    """Where pictures lie, as it travels to other processes. path: absolute, of a folder or an archive. name: in
    messages."""

    path: str
    name: str
    limits: Limits = DEFAULT_LIMITS

    def open(self) -> PictureFiles:
        """Nothing is listed of a folder. Raises ReadError, UnknownFormat for what is neither."""
        where = Path(self.path)
        if kind_of_path(where) is PathKind.FOLDER:
            return PictureFiles(self, DirectoryFolder(where, self.limits, self.name))
        return PictureFiles(self, _root(_open_archive(PathSource(where, self.name), self.limits)))


class PictureFiles:
    """place: where they lie. folder: the same, opened. Threads may read side by side."""

    def __init__(self, place: PicturesPlace, folder: Folder) -> None:
        self.place = place
        self.folder = folder
        # An archive counts what is unpacked of it.
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """In messages."""
        return self.place.name

    def read(self, path: str) -> bytes:
        """One picture's file. Raises ReadError for what is not there, ExplainError for one that is too long."""
        if isinstance(self.folder, DirectoryFolder):
            return self._read(path)
        with self._lock:
            return self._read(path)

    def _read(self, path: str) -> bytes:
        nbytes = self.folder.size_of(path) or 0
        if nbytes > MOST_PICTURE_NBYTES:
            raise ExplainError(
                f"The file has {human_bytes(nbytes)}; pictures are read up to {human_bytes(MOST_PICTURE_NBYTES)}."
            )
        source = self.folder.open(path)
        try:
            return source.read(0, source.size)
        finally:
            self._let_go(path, source)

    def _let_go(self, path: str, source: ByteSource) -> None:
        match self.folder:
            case ArchiveFolder() as archive:
                archive.let_go(path)
            case SubFolder(folder=ArchiveFolder() as archive, path=above):
                archive.let_go(f"{above}/{path}")
            case _:
                source.close()


def is_picture(path: str) -> bool:
    """By its ending."""
    return path.lower().endswith(ENDINGS)


def _open_archive(source: ByteSource, limits: Limits) -> ArchiveFolder:
    """The files of a zip or tar, compressed or not. Raises UnknownFormat for anything else."""
    opening = ReaderOpening(limits=limits.metered())
    peek = Peek(source, opening)
    packing = packing_of(peek.head)
    if packing is not None:
        peek = Peek(unpacked_source(source, packing, opening.limits), opening)
    if peek.directory is None and peek.tar is None:
        raise UnknownFormat(f"{source.name} is neither a folder nor a zip or tar archive.", hint=HINT)
    return archive_folder(peek)


def _root(folder: ArchiveFolder) -> Folder:
    """Where the class folders lie: below the one folder that most archives hold, as long as there are folders in it."""
    start, paths = "", [path for path in folder.files() if is_picture(path)]
    for _ in range(_MOST_LEVELS):
        first = paths[0].partition("/")[0] if paths else ""
        inside = [path[len(first) + 1 :] for path in paths if path.startswith(f"{first}/")]
        if not inside or len(inside) < len(paths) or not all("/" in path for path in inside):
            break
        start, paths = f"{start}/{first}" if start else first, inside
    return SubFolder(folder, start, folder.name) if start else folder
