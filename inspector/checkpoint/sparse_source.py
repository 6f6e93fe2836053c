"""A file of which only some pieces are here: what a browser has sent so far of one that it still uploads."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable

from inspector.checkpoint.source import check_range


class BytesMissing(Exception):
    """Bytes that are read and not here. Which: in the source's `missing`.

    No ReadError on purpose: readers take one for a statement about the file, and go on to another format.
    """


class SparseSource:
    """Random access to the pieces of a file that are here; reading anything else raises BytesMissing.

    size: of the whole file (bytes), as it was told. missing: every range (offset, n) that was asked for in vain since
    it was last cleared. distant: each read far from the others costs a request (`is_distant`).
    """

    distant = True

    def __init__(self, size: int, name: str) -> None:
        self.size = size
        self.name = name
        self.missing: list[tuple[int, int]] = []
        self._lock = threading.Lock()
        # Sorted by offset; none touches another.
        self._pieces: list[tuple[int, bytes]] = []

    @property
    def held_nbytes(self) -> int:
        """Of the pieces that are here."""
        return sum(len(data) for _, data in self._pieces)

    def add(self, offset: int, data: bytes) -> None:
        """Bytes that came. Where some of them are here already, these stay. Raises CorruptFile outside of the file."""
        check_range(self.name, self.size, offset, len(data))
        with self._lock:
            for start, n in self._gaps(offset, len(data)):
                self._pieces.append((start, data[start - offset : start - offset + n]))
            joined: list[tuple[int, bytes]] = []
            for start, piece in sorted(self._pieces):
                if joined and joined[-1][0] + len(joined[-1][1]) == start:
                    joined[-1] = (joined[-1][0], joined[-1][1] + piece)
                else:
                    joined.append((start, piece))
            self._pieces = joined

    def gaps(self, offset: int, n: int) -> list[tuple[int, int]]:
        """The parts (offset, n) of a range that are not here."""
        with self._lock:
            return self._gaps(offset, n)

    def read(self, offset: int, n: int) -> bytes:
        """Raises BytesMissing where some of it is not here, CorruptFile outside of the file."""
        return self.read_many([(offset, n)])[0]

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        """The same; what is missing of all ranges is noted before it is raised."""
        wanted = list(ranges)
        for offset, n in wanted:
            check_range(self.name, self.size, offset, n)
        with self._lock:
            missing = [gap for offset, n in wanted for gap in self._gaps(offset, n)]
            if missing:
                self.missing += missing
                raise BytesMissing(f"{len(missing)} ranges of {self.name} are not here.")
            return [self._held(offset, n) for offset, n in wanted]

    def close(self) -> None:
        """Let go of the pieces."""
        with self._lock:
            self._pieces.clear()

    def _held(self, offset: int, n: int) -> bytes:
        if not n:
            return b""
        start, data = self._pieces[bisect_right(self._pieces, offset, key=lambda piece: piece[0]) - 1]
        return data[offset - start : offset - start + n]

    def _gaps(self, offset: int, n: int) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        at, end = offset, offset + n
        first = max(0, bisect_right(self._pieces, offset, key=lambda piece: piece[0]) - 1)
        for start, data in self._pieces[first:]:
            if at >= end or start >= end:
                break
            if start > at:
                found.append((at, start - at))
            at = max(at, start + len(data))
        if at < end:
            found.append((at, end - at))
        return found
