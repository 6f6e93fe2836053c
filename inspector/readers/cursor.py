"""A position in a source that reads ahead a little while it moves on, and reads nothing of what it jumps over.

For headers that are walked field by field (GGUF, protobuf): a 2 GB file costs as much as its fields do.
"""

from __future__ import annotations

from inspector.checkpoint.source import ByteSource
from inspector.errors import ReadError

_FIRST_NBYTES = 512
_MOST_NBYTES = 256 * 1024


class Ended(ReadError):
    """The file ends where more of the header was expected. at: offset of what was wanted; n: its bytes."""

    def __init__(self, name: str, size: int, at: int, n: int) -> None:
        super().__init__(
            f"{name} is cut short: {n:,} bytes of its header are expected at byte {at:,}, the file has {size:,}.",
            hint="Download or copy it again.",
        )


class Cursor:
    """Offsets are absolute in the source. `at` may be moved freely; a jump beyond what was read ahead starts small."""

    def __init__(self, source: ByteSource, at: int = 0) -> None:
        self.source = source
        self.at = at
        self.size = source.size
        self.fetched = 0
        self._base = at
        self._data = b""
        self._ahead = _FIRST_NBYTES

    def take(self, n: int) -> bytes:
        """The next n bytes; callers bound n. Raises Ended."""
        start = self.at - self._base
        if start < 0 or start + n > len(self._data):
            self._fetch(n)
            start = 0
        self.at += n
        return self._data[start : start + n]

    def byte(self) -> int:
        """The next byte."""
        start = self.at - self._base
        if not 0 <= start < len(self._data):
            self._fetch(1)
            start = 0
        self.at += 1
        return self._data[start]

    def _fetch(self, n: int) -> None:
        if self.at < 0 or self.at + n > self.size:
            raise Ended(self.source.name, self.size, self.at, n)
        start = self.at - self._base
        near = 0 <= start <= len(self._data)
        self._ahead = min(2 * self._ahead, _MOST_NBYTES) if near else _FIRST_NBYTES
        kept = self._data[start:] if near else b""
        wanted = min(max(n, self._ahead), self.size - self.at)
        more = self.source.read(self.at + len(kept), wanted - len(kept)) if wanted > len(kept) else b""
        self.fetched += len(more)
        self._data = kept + more
        self._base = self.at
