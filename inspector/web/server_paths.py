"""Files in the one folder that the server's owner opened to visitors (INSPECTOR_ROOT). Hidden when it is not set."""

from __future__ import annotations

import os
from pathlib import Path

from inspector.checkpoint.digest import digest_of
from inspector.errors import RefusedContent
from inspector.jobs.job import Job
from inspector.jobs.kinds.table import sized
from inspector.web import jobs, session
from inspector.web.store import Stored, the_store

_LISTED = 2_000
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
# Read in a fraction of a second.
_LARGE_NBYTES = 100_000_000


def server_root() -> Path | None:
    """The folder, resolved; None when visitors may read none."""
    named = os.environ.get("INSPECTOR_ROOT")
    root = Path(named).resolve() if named else None
    return root if root is not None and root.is_dir() else None


def list_files() -> list[str]:
    """Relative paths of files under the root, hidden ones left out, at most 2,000."""
    root = server_root()
    found: list[str] = []
    if root is None:
        return found
    for folder, folders, files in os.walk(root, followlinks=False):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        here = Path(folder)
        for name in sorted(files):
            if not name.startswith(".") and _inside(here / name, root):
                found.append(str((here / name).relative_to(root)))
                if len(found) >= _LISTED:
                    return found
    return found


def list_folders() -> list[str]:
    """Relative paths, with a slash behind, of folders that hold files: of the root itself "./". Hidden and linked ones
    are left out; at most 2,000."""
    root = server_root()
    found: list[str] = []
    if root is None:
        return found
    for folder, folders, files in os.walk(root, followlinks=False):
        here = Path(folder)
        folders[:] = sorted(f for f in folders if not f.startswith(".") and not (here / f).is_symlink())
        if any(not name.startswith(".") for name in files) or here == root:
            found.append(f"{here.relative_to(root)}/")
        if len(found) >= _LISTED:
            break
    return found


def list_sets() -> tuple[list[str], list[str]]:
    """(folders, archives) under the root that may hold pictures in class folders: relative paths of folders that hold
    folders themselves, and of archives. Hidden and linked folders are left out; at most 2,000 of each."""
    root = server_root()
    found: list[str] = []
    archives: list[str] = []
    if root is None:
        return found, archives
    for folder, folders, files in os.walk(root, followlinks=False):
        here = Path(folder)
        folders[:] = sorted(f for f in folders if not f.startswith(".") and not (here / f).is_symlink())
        packed = [f for f in sorted(files) if f.lower().endswith(_ARCHIVES) and not f.startswith(".")]
        archives += [str((here / f).relative_to(root)) for f in packed if _inside(here / f, root)]
        if folders and here != root:
            found.append(str(here.relative_to(root)))
        if max(len(found), len(archives)) >= _LISTED:
            break
    return found[:_LISTED], archives[:_LISTED]


def resolve_folder(relative: str) -> Path:
    """A folder's real place. Raises RefusedContent for whatever lies outside the root, links included."""
    root = server_root()
    try:
        real = (root / relative).resolve(strict=True) if root is not None else None
    except (OSError, RuntimeError, ValueError):
        real = None
    if root is None or real is None or not real.is_relative_to(root) or not real.is_dir():
        raise _outside()
    return real


def _outside() -> RefusedContent:
    return RefusedContent(
        "That path is outside the folder this server opens to visitors.", hint="Choose one from the list."
    )


def resolve_in_root(relative: str) -> Path:
    """The file's real place. Raises RefusedContent for whatever lies outside the root, symbolic links included."""
    root = server_root()
    if root is None or not _inside(root / relative, root):
        raise _outside()
    return (root / relative).resolve()


def store_path(relative: str) -> Stored:
    """Take up one of them. Raises RefusedContent as `resolve_in_root`."""
    path = resolve_in_root(relative)
    return the_store().refer(path, name=path.name, owner=session.owner(), digest=_digest)


def _digest(path: Path) -> str:
    """Of a large file by a worker, with progress; a file that stayed as it was is not read again."""
    status = path.stat()
    if status.st_size < _LARGE_NBYTES:
        return digest_of(path)
    job = Job(kind=sized("digest", status.st_size), arguments=(path, status.st_size, status.st_mtime_ns))
    found: str = jobs.ask(job, says="Computing its sha256")
    return found


def _inside(path: Path, root: Path) -> bool:
    """A regular file whose real place is under the root."""
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return False
    return real.is_relative_to(root) and real.is_file()
