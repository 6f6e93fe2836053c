"""Files in the one folder that the server's owner opened to visitors (INSPECTOR_ROOT). Hidden when it is not set."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from inspector.checkpoint.digest import digest_of
from inspector.errors import RefusedContent, UsageError
from inspector.jobs.job import Job
from inspector.jobs.kinds.table import sized
from inspector.units import shorten_middle
from inspector.web import jobs, session
from inspector.web.server_listing import Listing, is_inside, list_root
from inspector.web.store import Stored, the_store

# Read in a fraction of a second.
_LARGE_NBYTES = 100_000_000
_NAMED = 4


def server_root() -> Path | None:
    """The folder, resolved; None when visitors may read none."""
    named = os.environ.get("INSPECTOR_ROOT")
    root = Path(named).resolve() if named else None
    return root if root is not None and root.is_dir() else None


def audits_store() -> Path | None:
    """The store of audits whose catalogue visitors may see, resolved; None without one."""
    named = os.environ.get("INSPECTOR_CATALOGUE")
    return Path(named).resolve() if named else None


def listing() -> Listing:
    """What lies in it, as of a few seconds ago; nothing where there is no root."""
    root = server_root()
    return list_root(str(root)) if root is not None else Listing()


def resolve_folder(relative: str) -> Path:
    """A folder's real place. Raises RefusedContent for whatever lies outside the root, links included, or is gone."""
    root = server_root()
    try:
        real = (root / relative).resolve(strict=True) if root is not None else None
    except (OSError, RuntimeError, ValueError):
        real = None
    if root is None or real is None or not real.is_relative_to(root) or not real.is_dir():
        raise _refusal(relative, root, "folder")
    return real


def _refusal(relative: str, root: Path | None, what: str) -> RefusedContent:
    """Why it is not opened. Of what lies outside nothing is said, not even whether it is there."""
    try:
        inside = root is not None and (root / relative).resolve().is_relative_to(root)
    except (OSError, RuntimeError, ValueError):
        inside = False
    says = (
        f"There is no {what} {shorten_middle(relative, 90)!r} in what this server opens to visitors, or it is gone."
        if inside and relative
        else "That path is outside the folder this server opens to visitors."
    )
    return RefusedContent(says, hint="Choose one from the list on the Open page.")


def named(typed: str, offered: Iterable[str]) -> str:
    """What a visitor means who typed it into a box that offers these: the path itself where there is one, else the one
    of them that contains it. Raises UsageError where several do; what nobody knows comes back as it is."""
    listed = list(offered)
    root = server_root()
    if typed in listed or is_folder(typed) or (root is not None and is_inside(root / typed, root)):
        return typed
    found = [path for path in listed if typed.casefold() in path.casefold()]
    if len(found) < 2:
        return found[0] if found else typed
    more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    raise UsageError(
        f"{len(found):,} of what is listed contain {shorten_middle(typed, 60)!r}: {', '.join(found[:_NAMED])}{more}.",
        hint="Type more of the name, or choose one from the list.",
    )


def resolve_in_root(relative: str) -> Path:
    """The file's real place. Raises RefusedContent for whatever lies outside the root, links included, or is gone."""
    root = server_root()
    if root is None or not is_inside(root / relative, root):
        raise _refusal(relative, root, "file")
    return (root / relative).resolve()


def store_path(relative: str) -> Stored:
    """Take up one of them. Raises RefusedContent as `resolve_in_root`."""
    path = resolve_in_root(relative)
    return the_store().refer(path, name=path.name, owner=session.owner(), digest=_digest)


def is_folder(relative: str) -> bool:
    """Whether a path that a visitor chose or typed is a folder below the root."""
    try:
        resolve_folder(relative)
    except RefusedContent:
        return False
    return True


def _digest(path: Path) -> str:
    """Of a large file by a worker, with progress; a file that stayed as it was is not read again."""
    status = path.stat()
    if status.st_size < _LARGE_NBYTES:
        return digest_of(path)
    job = Job(kind=sized("digest", status.st_size), arguments=(path, status.st_size, status.st_mtime_ns))
    found: str = jobs.ask(job, says="Computing its sha256")
    return found
