"""Results on disk, a file for each question: written by workers, read by the server, the least recently used ones go.

They are pickles of this program's own, in a folder that only it can write; nothing of a visitor's is ever read here.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
from contextlib import suppress
from pathlib import Path

_KEY = re.compile(r"[0-9a-f]{64}")
_ENDING = ".result"
# Each is written in one go.
_PART_SECONDS = 600


class Results:
    """root: the folder, made when it is first written to. most_nbytes: of all together."""

    def __init__(self, root: Path, most_nbytes: int) -> None:
        self.root = root
        self.most_nbytes = most_nbytes
        self._lock = threading.Lock()

    def write(self, key: str, data: bytes) -> None:
        """Keep it; visible only when it is whole. A full disk keeps nothing, and says nothing: it is made again."""
        place = self._place(key)
        part = self.root / f"{secrets.token_hex(8)}.part"
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            part.write_bytes(data)
            part.replace(place)
        except OSError:
            part.unlink(missing_ok=True)

    def read(self, key: str) -> bytes | None:
        """None where there is none, or none any more."""
        place = self._place(key)
        try:
            data = place.read_bytes()
            os.utime(place)
        except OSError:
            return None
        return data

    def drop(self, key: str) -> None:
        """It cannot be read, or is not wanted any more."""
        self._place(key).unlink(missing_ok=True)

    def sweep(self) -> int:
        """Let the oldest go until the rest is within bounds; bytes that stay."""
        with self._lock:
            try:
                found = [(entry.stat(), Path(entry.path)) for entry in os.scandir(self.root) if entry.is_file()]
            except OSError:
                return 0
            total = sum(status.st_size for status, _ in found)
            for status, place in sorted(found, key=lambda one: one[0].st_mtime):
                if total <= self.most_nbytes:
                    break
                place.unlink(missing_ok=True)
                total -= status.st_size
            return total

    def clear_rests(self) -> None:
        """Half files of an end in the middle; called when no worker of this server runs. Those of another server that
        shares the folder are younger."""
        for part in self.root.glob("*.part"):
            with suppress(OSError):
                if time.time() - part.stat().st_mtime > _PART_SECONDS:
                    part.unlink()

    def _place(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError("no key of a job")
        return self.root / f"{key}{_ENDING}"
