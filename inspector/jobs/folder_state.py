"""By what a folder of the server is known again: the names, sizes and times of the files below it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderState:
    """digest: sha256 of the files' paths, sizes and times of change, as hexadecimal digits; no content is read.

    nbytes: of all of them. count: how many there are.
    """

    digest: str
    nbytes: int
    count: int


def state_of_folder(folder: Path, *, most: int) -> FolderState:
    """Of the files below it, linked folders left out; what comes after more than `most` files is not looked at."""
    digest, nbytes, count = hashlib.sha256(), 0, 0
    for here, below, names in os.walk(folder):
        below.sort()
        inside = here[len(str(folder)) :]
        for name in sorted(names):
            place = f"{here}{os.sep}{name}"
            try:
                # A Path would cost more than the question, of ten thousand files.
                status = os.stat(place)  # noqa: PTH116
            except OSError:
                # A link to nothing is something, too.
                digest.update(f"{inside!a} {name!a}\n".encode())
                continue
            count += 1
            nbytes += status.st_size
            digest.update(f"{inside!a} {name!a} {status.st_size} {status.st_mtime_ns} {status.st_ino}\n".encode())
        if count > most:
            break
    return FolderState(digest=digest.hexdigest(), nbytes=nbytes, count=count)
