"""Parts of files, and several files, as one source: what lets a sharded checkpoint be read like a single file.

A reader of several files puts their bytes one behind the other (`JoinedSource`) and shifts the offsets of each file's
storages; nobody behind it has to know. A member of an archive is a `SliceSource` of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from inspector.checkpoint.source import ByteSource, check_range


class SliceSource:
    """nbytes of another source, from start: a member of an archive that is stored as it is.

    Raises CorruptFile when the other source is shorter than that.
    """

    def __init__(self, source: ByteSource, start: int, nbytes: int, name: str = "") -> None:
        check_range(source.name, source.size, start, nbytes)
        self.inner = source
        self.start = start
        self.size = nbytes
        self.name = name or source.name

    def read(self, offset: int, n: int) -> bytes:
        check_range(self.name, self.size, offset, n)
        return self.inner.read(self.start + offset, n)

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        wanted = list(ranges)
        for offset, n in wanted:
            check_range(self.name, self.size, offset, n)
        return self.inner.read_many([(self.start + offset, n) for offset, n in wanted])

    def close(self) -> None:
        self.inner.close()

    def __reduce__(self) -> tuple[object, ...]:
        return (SliceSource, (self.inner, self.start, self.size, self.name))


class JoinedSource:
    """Several sources, one behind the other. `starts[i]` is where part i begins."""

    def __init__(self, parts: Sequence[ByteSource], name: str) -> None:
        self.parts = tuple(parts)
        self.name = name
        ends = list(accumulate(part.size for part in self.parts))
        self.starts = (0, *ends[:-1]) if ends else ()
        self.size = ends[-1] if ends else 0

    def read(self, offset: int, n: int) -> bytes:
        check_range(self.name, self.size, offset, n)
        found: list[bytes] = []
        number = max(0, bisect_right(self.starts, offset) - 1)
        while n:
            part = self.parts[number]
            inside = offset - self.starts[number]
            step = min(n, part.size - inside)
            if step > 0:
                found.append(part.read(inside, step))
            offset += step
            n -= step
            number += 1
        return found[0] if len(found) == 1 else b"".join(found)

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        return [self.read(offset, n) for offset, n in ranges]

    def close(self) -> None:
        for part in self.parts:
            part.close()

    def __reduce__(self) -> tuple[object, ...]:
        return (JoinedSource, (self.parts, self.name))


def paths_of(source: ByteSource) -> tuple[str, ...]:
    """Every file on this machine that a source reads from, through slices and joins."""
    own = getattr(source, "path", None)
    inner = getattr(source, "inner", None)
    below = (*getattr(source, "parts", ()), *(() if inner is None else (inner,)))
    found = (own,) if isinstance(own, str) else ()
    return tuple(dict.fromkeys((*found, *(path for part in below for path in paths_of(part)))))
