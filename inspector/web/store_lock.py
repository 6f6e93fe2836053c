"""Which folder this server keeps its uploads in: one server a store, since each sweeps what it does not know; several
where each of them was told so."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import IO

from inspector.errors import UsageError
from inspector.web.front.variables import SHARED, is_shared
from inspector.web.store import STORE_VARIABLE, default_root
from inspector.web.store_shared import lock

# Servers of one person on one machine that nobody gave a store.
_MOST = 9
_FILE = "lock"


@lru_cache(maxsize=1)
def hold_store() -> Path:
    """The folder, held until this process ends, and from here on the store of everything in it.

    A second server takes a folder beside the first one's. Raises UsageError where the operator named one that another
    server holds, and not both were told that they share it.
    """
    named, first, shares = bool(os.environ.get(STORE_VARIABLE)), default_root(), is_shared(os.environ)
    if shares and not named:
        raise UsageError(f"{SHARED.name} is on, and no store is named.", hint=f"Name it: {STORE_VARIABLE}=FOLDER.")
    for number in range(1, 2 if named else _MOST + 1):
        root = first if number == 1 else first.with_name(f"{first.name}-{number}")
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = (root / _FILE).open("a+b")
        if lock(file, share=shares):
            _held.append(file)
            # Whatever asks for the store later, in this process or one that it starts, asks for this one.
            os.environ[STORE_VARIABLE] = str(root)
            return root
        file.close()
    alone = "Another server that shares it with none" if shares else "Another server"
    raise UsageError(
        f"{alone} uses the store {first}.",
        hint=f"Give this one a folder of its own: {STORE_VARIABLE}=FOLDER; or start all of them with {SHARED.name}=on.",
    )


# The locks end with their files.
_held: list[IO[bytes]] = []
