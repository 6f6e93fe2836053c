"""What was fetched of a file and may be asked for again: ranges that do not overlap, the oldest let go first."""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from collections import OrderedDict

Range = tuple[int, int]  # (offset, bytes)


class KeptRanges:
    """Safe to use from several threads. most_nbytes: that is kept of all ranges together; the newest always is."""

    def __init__(self, most_nbytes: int) -> None:
        self._most_nbytes = most_nbytes
        self._lock = threading.Lock()
        self._starts: list[int] = []
        self._blocks: OrderedDict[int, bytes] = OrderedDict()  # by their starts, the oldest first
        self._nbytes = 0

    def add(self, offset: int, data: bytes) -> None:
        """Bytes that came. What is kept of them already stays."""
        with self._lock:
            for start, n in self._gaps(offset, len(data)):
                insort(self._starts, start)
                self._blocks[start] = data[start - offset : start - offset + n]
                self._nbytes += n
            while len(self._starts) > 1 and self._nbytes > self._most_nbytes:
                start, gone = self._blocks.popitem(last=False)
                self._nbytes -= len(gone)
                del self._starts[bisect_right(self._starts, start) - 1]

    def gaps(self, offset: int, n: int) -> list[Range]:
        """The parts of a range that are not kept, in order."""
        with self._lock:
            return self._gaps(offset, n)

    def read(self, offset: int, n: int) -> bytes | None:
        """The bytes of a range, None where some are not kept."""
        with self._lock:
            if self._gaps(offset, n):
                return None
            return b"".join(data for _, data in self._pieces(offset, n))

    def fill(self, offset: int, buffer: bytearray) -> list[Range]:
        """Put what is kept into a buffer that begins at the offset; the parts that it lacks."""
        with self._lock:
            for start, data in self._pieces(offset, len(buffer)):
                buffer[start - offset : start - offset + len(data)] = data
            return self._gaps(offset, len(buffer))

    def end_before(self, offset: int) -> int:
        """Where the range ends that begins at or before an offset, 0 without one."""
        with self._lock:
            i = bisect_right(self._starts, offset) - 1
            return self._starts[i] + len(self._blocks[self._starts[i]]) if i >= 0 else 0

    def start_after(self, offset: int) -> int | None:
        """Where the next range begins behind an offset."""
        with self._lock:
            i = bisect_right(self._starts, offset)
            return self._starts[i] if i < len(self._starts) else None

    def clear(self) -> None:
        """Let go of all."""
        with self._lock:
            self._starts.clear()
            self._blocks.clear()
            self._nbytes = 0

    def _pieces(self, offset: int, n: int) -> list[tuple[int, bytes]]:
        """(offset, bytes) of what is kept of a range."""
        found: list[tuple[int, bytes]] = []
        for start in self._starts[max(0, bisect_right(self._starts, offset) - 1) :]:
            if start >= offset + n:
                break
            data = self._blocks[start]
            low, high = max(0, offset - start), min(len(data), offset + n - start)
            if low < high:
                found.append((start + low, data[low:high]))
        return found

    def _gaps(self, offset: int, n: int) -> list[Range]:
        found: list[Range] = []
        at = offset
        for start in self._starts[max(0, bisect_right(self._starts, offset) - 1) :]:
            if start >= offset + n:
                break
            if start > at:
                found.append((at, start - at))
            at = max(at, start + len(self._blocks[start]))
        if at < offset + n:
            found.append((at, offset + n - at))
        return found
