"""What several servers need to write one store: a lock between processes, and a folder of each for what is on its way.

Both are locks on files, which end with whoever holds them, however that ends. The store's disk has to know them: one
machine's does, and so do NFS from version 4 on and CephFS.
"""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from pathlib import Path
from typing import IO

from inspector.errors import UsageError

_FOLDERS, _LOCK = "servers", "lock"


class SharedLock:
    """As `threading.RLock`, between all processes that name the same file."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._within = threading.RLock()
        self._depth = 0
        self._file: IO[bytes] | None = None

    def __enter__(self) -> bool:
        self._within.acquire()
        try:
            if self._depth == 0:
                # Opened each time: a lock belongs to what was opened, and a child that was forked has that, too.
                file = self._place.open("a+b")
                try:
                    lock(file, wait=True)
                except BaseException:
                    file.close()
                    raise
                self._file = file
            self._depth += 1
        except BaseException:
            self._within.release()
            raise
        return True

    def __exit__(self, *_: object) -> None:
        try:
            self._depth -= 1
            if self._depth == 0 and self._file is not None:
                unlock(self._file)
                self._file.close()
                self._file = None
        finally:
            self._within.release()


class OwnFolder:
    """One server's folder below the store, held for as long as its process lives. Made and cleared under the lock of
    the store, so that none is cleared between the two."""

    def __init__(self, root: Path) -> None:
        self._all = root / _FOLDERS
        self.path = self._all / secrets.token_hex(8)
        self.path.mkdir(parents=True, mode=0o700)
        self._file = (self.path / _LOCK).open("a+b")
        lock(self._file)

    def clear_dead(self) -> None:
        """What servers that ended left on its way."""
        for folder in self._all.iterdir():
            if folder != self.path and _is_dead(folder):
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """The server ends: nothing is on its way any more."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._file.close()


def lock(file: IO[bytes], *, share: bool = False, wait: bool = False) -> bool:
    """Whether it is held now, by this process alone unless it is shared. Raises UsageError where the disk knows no
    locks, or the system none that several share."""
    if os.name == "nt":
        if share or wait:
            raise UsageError("Several servers cannot share a store on Windows.", hint="Give each a store of its own.")
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            return False
        return True
    import fcntl

    how = (fcntl.LOCK_SH if share else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    try:
        fcntl.flock(file.fileno(), how)
    except BlockingIOError:
        return False
    except OSError as error:
        says = f"The store's disk does not lock files: {error.strerror or error}."
        raise UsageError(says, hint="Name a folder on another disk: INSPECTOR_STORE=FOLDER.") from error
    return True


def unlock(file: IO[bytes]) -> None:
    """Before it is closed: a child that was forked meanwhile has it open, too."""
    import fcntl

    fcntl.flock(file.fileno(), fcntl.LOCK_UN)


def _is_dead(folder: Path) -> bool:
    """Whether nobody holds it."""
    try:
        with (folder / _LOCK).open("a+b") as file:
            held = lock(file)
            if held:
                unlock(file)
            return held
    except OSError:
        return False
