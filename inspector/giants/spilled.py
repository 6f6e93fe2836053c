"""The large parts of many tensors' statistics on a disk, where they are too many for memory.

Of a tensor of a giant a table, rows, columns and a vector's values are 80 kB, of 10^5 of them 8 GB. What is kept of
them is a view of a file without a name: the system takes its pages back when it needs them, and the file ends with its
last view.
"""

from __future__ import annotations

import copyreg
import mmap
import tempfile
from dataclasses import fields, replace
from typing import Any

from inspector.weights.report import PackedBytes, TensorStatistics

#: So much stays in memory before anything is written.
MOST_NBYTES = 128 << 20
# What is shorter stays: a view costs two hundred bytes itself.
_LEAST_NBYTES = 2048
_SEGMENT_NBYTES = 64 << 20


class Spill:
    """most_nbytes: what stays in memory. Where the disk does not take it, all does."""

    def __init__(self, most_nbytes: int = MOST_NBYTES) -> None:
        self._left = most_nbytes
        self._segment: mmap.mmap | None = None
        self._filled = 0
        self._no_room = False

    def kept(self, statistics: TensorStatistics) -> TensorStatistics:
        """The same, equal to what was given."""
        large = _large(statistics)
        nbytes = sum(map(len, large.values()))
        if nbytes <= self._left or self._no_room:
            self._left = max(0, self._left - nbytes)
            return statistics
        try:
            moved = {place: self._moved(data) for place, data in large.items()}
        except OSError:
            self._no_room = True
            return statistics
        return _with(statistics, moved)

    def _moved(self, data: bytes | memoryview) -> memoryview:
        segment = self._segment
        if segment is None or self._filled + len(data) > len(segment):
            if segment is not None:
                # Written pages leave this process; they come back when they are asked for.
                _let_go(segment)
            with tempfile.TemporaryFile(prefix="inspector-") as file:
                # Written and not only made longer: a full disk should say so here, and not by a signal later.
                nbytes = max(_SEGMENT_NBYTES, len(data))
                block = bytes(1 << 20)
                for at in range(0, nbytes, len(block)):
                    file.write(block[: nbytes - at])
                file.flush()
                segment = self._segment = mmap.mmap(file.fileno(), nbytes)
            self._filled = 0
        begin, self._filled = self._filled, self._filled + len(data)
        segment[begin : self._filled] = bytes(data)
        return memoryview(segment)[begin : self._filled].toreadonly()


def _let_go(segment: mmap.mmap) -> None:
    if hasattr(mmap, "MADV_DONTNEED"):
        segment.madvise(mmap.MADV_DONTNEED)


def _large(statistics: TensorStatistics) -> dict[tuple[str, str], PackedBytes]:
    """By field, and field within it, "" for the tensor's own."""
    found: dict[tuple[str, str], PackedBytes] = {}
    for name in ("", "table", "rows"):
        one = getattr(statistics, name) if name else statistics
        for field in fields(one) if one is not None else ():
            data = getattr(one, field.name)
            if isinstance(data, bytes) and len(data) >= _LEAST_NBYTES:
                found[name, field.name] = data
    return found


def _with(statistics: TensorStatistics, moved: dict[tuple[str, str], memoryview]) -> TensorStatistics:
    parts: dict[str, Any] = {field: data for (of, field), data in moved.items() if not of}
    for name in {of for of, _ in moved if of}:
        inside = {field: data for (of, field), data in moved.items() if of == name}
        parts[name] = replace(getattr(statistics, name), **inside)
    return replace(statistics, **parts)


# A report that travels to another process takes its bytes along.
copyreg.pickle(memoryview, lambda view: (bytes, (view.tobytes(),)))  # type: ignore[arg-type, return-value]
