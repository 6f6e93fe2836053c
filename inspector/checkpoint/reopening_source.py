"""A source that holds nothing open between two reads: for checkpoints of thousands of files."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from inspector.checkpoint.source import ByteSource

# Systems let a process hold 256 (macOS) or 1,024 (Linux) files open.
MOST_HELD_OPEN = 200


class BriefSource:
    """Another source, closed after every read. Reads wait for each other, so that none closes what another uses."""

    def __init__(self, inner: ByteSource) -> None:
        self.inner = inner
        self.name = inner.name
        self.size = inner.size
        self._lock = threading.Lock()
        inner.close()

    def read(self, offset: int, n: int) -> bytes:
        with self._lock:
            try:
                return self.inner.read(offset, n)
            finally:
                self.inner.close()

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        with self._lock:
            try:
                return self.inner.read_many(ranges)
            finally:
                self.inner.close()

    def close(self) -> None:
        with self._lock:
            self.inner.close()

    def __reduce__(self) -> tuple[object, ...]:
        return (BriefSource, (self.inner,))
