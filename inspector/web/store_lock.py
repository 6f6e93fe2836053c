"""Which folder this server keeps its uploads in: one server a store, since each sweeps what it does not know."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import IO

from inspector.errors import UsageError
from inspector.web.store import STORE_VARIABLE, default_root

# Servers of one person on one machine that nobody gave a store.
_MOST = 9
_FILE = "lock"


@lru_cache(maxsize=1)
def hold_store() -> Path:
    """The folder, held until this process ends, and from here on the store of everything in it.

    A second server takes a folder beside the first one's. Raises UsageError where the operator named one that another
    server holds.
    """
    named, first = bool(os.environ.get(STORE_VARIABLE)), default_root()
    for number in range(1, 2 if named else _MOST + 1):
        root = first if number == 1 else first.with_name(f"{first.name}-{number}")
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = (root / _FILE).open("ab")
        if _locked(file):
            _held.append(file)
            # Whatever asks for the store later, in this process or one that it starts, asks for this one.
            os.environ[STORE_VARIABLE] = str(root)
            return root
        file.close()
    raise UsageError(
        f"Another server uses the store {first}.", hint=f"Give this one a folder of its own: {STORE_VARIABLE}=FOLDER."
    )


# The locks end with their files.
_held: list[IO[bytes]] = []


def _locked(file: IO[bytes]) -> bool:
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
