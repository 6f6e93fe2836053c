"""What the store notes of each file, a small JSON text named by its digest."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from inspector.web.stored import Stored, is_digest

_ENDING = ".json"


class Records:
    """All of one folder. A record is parsed again where it was written since, by this server or another one; whoever
    writes holds the store's lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # By name: when it was written, as which file, and what it says.
        self._known: dict[str, tuple[tuple[int, int], Stored]] = {}

    def find(self, sha256: str) -> Stored | None:
        """The record of a digest; None for anything that is not one of ours."""
        if not is_digest(sha256):
            return None
        try:
            return Stored(**json.loads(self._place(sha256).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def all(self) -> list[Stored]:
        """Those that can be read."""
        known: dict[str, tuple[tuple[int, int], Stored]] = {}
        with os.scandir(self.folder) as entries:
            for entry in entries:
                try:
                    status = entry.stat()
                except OSError:
                    continue
                mark = (status.st_mtime_ns, status.st_ino)
                held = self._known.get(entry.name)
                if held is None or held[0] != mark:
                    stored = self.find(entry.name.removesuffix(_ENDING))
                    if stored is None:
                        continue
                    held = mark, stored
                known[entry.name] = held
        self._known = known
        return [stored for _, stored in known.values()]

    def write(self, stored: Stored, incoming: Path) -> None:
        """In place of what was said before, whole or not at all. incoming: where it is written first."""
        incoming.write_text(json.dumps(asdict(stored)), encoding="utf-8")
        incoming.replace(self._place(stored.sha256))

    def remove(self, sha256: str) -> None:
        """Nothing is known of it any more."""
        self._place(sha256).unlink(missing_ok=True)

    def _place(self, sha256: str) -> Path:
        return self.folder / f"{sha256}{_ENDING}"
