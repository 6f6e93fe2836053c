"""What was fetched of a file, kept on disk while it is worked on, so that no byte comes through the network twice."""

from __future__ import annotations

import shutil
import tempfile
import threading
from bisect import bisect_right
from typing import BinaryIO

from inspector.remote.kept import Range

# Of what is free where temporary files lie: others need room, too, and it may be memory.
_SHARE_OF_FREE = 4


class Spool:
    """Safe to use from several threads. most_nbytes: that are kept, and a quarter of the free disk at most; what comes
    later is not kept. The file has no name and goes with the program."""

    def __init__(self, most_nbytes: int) -> None:
        self._most_nbytes = most_nbytes
        self._lock = threading.Lock()
        self._file: BinaryIO | None = None
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._nbytes = 0

    def add(self, offset: int, data: bytes) -> None:
        """Bytes that came. Raises nothing: without room they come again."""
        with self._lock:
            if not data or self._nbytes + len(data) > self._most_nbytes:
                return
            try:
                if self._file is None:
                    free = shutil.disk_usage(tempfile.gettempdir()).free // _SHARE_OF_FREE
                    self._most_nbytes = min(self._most_nbytes, free)
                    if len(data) > self._most_nbytes:
                        return
                    self._file = tempfile.TemporaryFile(prefix="inspector-")  # noqa: SIM115 - it lives as long as this
                self._file.seek(offset)
                self._file.write(data)
                self._file.flush()
            except OSError:
                self._most_nbytes = 0
                return
            self._join(offset, offset + len(data))

    def fill(self, offset: int, buffer: bytearray) -> list[Range]:
        """Put what is kept into a buffer that begins at the offset; the parts that it lacks, in order."""
        gaps: list[Range] = []
        end = at = offset
        end += len(buffer)
        with self._lock:
            for i in range(max(0, bisect_right(self._starts, offset) - 1), len(self._starts)):
                low, high = max(at, self._starts[i]), min(end, self._ends[i])
                if self._starts[i] >= end:
                    break
                if low >= high:
                    continue
                data = self._read(low, high - low)
                if len(data) < high - low:
                    continue
                if low > at:
                    gaps.append((at, low - at))
                buffer[low - offset : high - offset] = data
                at = high
        if at < end:
            gaps.append((at, end - at))
        return gaps

    def _read(self, offset: int, n: int) -> bytes:
        if self._file is None:
            return b""
        try:
            self._file.seek(offset)
            return self._file.read(n)
        except OSError:
            return b""

    def _join(self, start: int, end: int) -> None:
        """One range with all that it touches."""
        first = bisect_right(self._starts, start)
        if first and self._ends[first - 1] >= start:
            first -= 1
        last = first
        while last < len(self._starts) and self._starts[last] <= end:
            start, end = min(start, self._starts[last]), max(end, self._ends[last])
            last += 1
        before = sum(self._ends[first:last]) - sum(self._starts[first:last])
        self._starts[first:last], self._ends[first:last] = [start], [end]
        self._nbytes += end - start - before
