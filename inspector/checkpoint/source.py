"""Where bytes come from: one small interface under every reader.

A path, a buffer (bytes or a memory map), an HTTP server that answers ranges, and a browser's file slice all serve the
same readers through `ByteSource`. Nothing here knows any format.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from inspector.errors import CorruptFile, ReadError
from inspector.side_files import open_regular, reason_of

# Ranges this close are read in one go, as long as a block is no larger than that.
_GAP_NBYTES = 4096
_BLOCK_NBYTES = 1 << 20
_MOST_JOINED = 4096


@runtime_checkable
class ByteSource(Protocol):
    """Random access to the bytes of one file. Implementations are safe to use from several threads."""

    @property
    def name(self) -> str:
        """What to call it in messages: a base name, never a full path."""
        ...

    @property
    def size(self) -> int:
        """Length in bytes."""
        ...

    def read(self, offset: int, n: int) -> bytes:
        """Exactly n bytes from offset. Raises CorruptFile when they are not there: callers check against `size`."""
        ...

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        """One `read` per (offset, n); a source that can join round trips does."""
        ...

    def close(self) -> None:
        """Give back what is held open. Reading again may reopen."""
        ...


def read_into(source: ByteSource, offset: int, buffer: memoryview) -> None:
    """Fills the buffer from offset on, by the source's own way where it has one. Raises as `read`."""
    own = getattr(source, "read_into", None)
    if own is None:
        buffer[:] = source.read(offset, len(buffer))
    else:
        own(offset, buffer)


def is_distant(source: ByteSource) -> bool:
    """Whether each read far from the others costs a round trip through a network."""
    inner = getattr(source, "inner", None)
    below = (*getattr(source, "parts", ()), *(() if inner is None else (inner,)))
    return bool(getattr(source, "distant", False)) or any(is_distant(one) for one in below)


def check_range(name: str, size: int, offset: int, n: int) -> None:
    """Raise CorruptFile unless offset .. offset + n lies inside size bytes."""
    if offset < 0 or n < 0 or offset + n > size:
        raise CorruptFile(
            f"{name} ends at byte {size:,}, but bytes {offset:,} to {offset + n:,} are needed.",
            hint="The file is probably cut short: download or copy it again.",
        )


class BufferSource:
    """Bytes in hand, or anything with the buffer protocol, such as a memory map."""

    def __init__(self, data: bytes | bytearray | memoryview, name: str = "these bytes") -> None:
        self._view = memoryview(data).cast("B")
        self.name = name
        self.size = len(self._view)

    def read(self, offset: int, n: int) -> bytes:
        check_range(self.name, self.size, offset, n)
        return bytes(self._view[offset : offset + n])

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        return [self.read(offset, n) for offset, n in ranges]

    def close(self) -> None:
        return None

    def __reduce__(self) -> tuple[object, ...]:
        return (BufferSource, (bytes(self._view), self.name))


class PathSource:
    """A regular file, read with pread.

    pread and not mmap: a file that another process cuts short while it is mapped kills the reader with SIGBUS.
    """

    def __init__(self, path: str | os.PathLike[str], name: str = "") -> None:
        self._descriptor: int | None
        self._descriptor, status = open_regular(path, name)
        self.path = os.path.abspath(os.fspath(path))
        self.name = name or os.path.basename(self.path)
        self._lock = threading.Lock()
        self.size = status.st_size
        self._written = status.st_mtime_ns

    def _open(self) -> int:
        with self._lock:
            if self._descriptor is None:
                descriptor, status = open_regular(self.path, self.name)
                if (status.st_size, status.st_mtime_ns) != (self.size, self._written):
                    os.close(descriptor)
                    raise ReadError(f"{self.name} has changed since it was opened.", hint="Open it again.")
                self._descriptor = descriptor
            return self._descriptor

    def read(self, offset: int, n: int) -> bytes:
        check_range(self.name, self.size, offset, n)
        parts: list[bytes] = []
        left = n
        while left:
            try:
                part = os.pread(self._open(), left, offset)
            except OSError as error:
                raise ReadError(f"{self.name} cannot be read: {reason_of(error)}.") from error
            if not part:
                raise CorruptFile(f"{self.name} became shorter while it was read, at byte {offset:,}.")
            parts.append(part)
            offset += len(part)
            left -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """As `read`, into memory that is there already: fresh memory for each piece costs more than the reading."""
        check_range(self.name, self.size, offset, len(buffer))
        if not hasattr(os, "preadv"):  # Not everywhere where there is pread: not in a browser.
            buffer[:] = self.read(offset, len(buffer))
            return
        while buffer:
            try:
                n = os.preadv(self._open(), [buffer], offset)
            except OSError as error:
                raise ReadError(f"{self.name} cannot be read: {reason_of(error)}.") from error
            if not n:
                raise CorruptFile(f"{self.name} became shorter while it was read, at byte {offset:,}.")
            offset += n
            buffer = buffer[n:]

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        """Neighbours in one read: twenty thousand local headers of an archive of small tensors are a few blocks."""
        wanted = list(ranges)
        found: list[bytes] = []
        block, start = b"", 0
        for number, (offset, n) in enumerate(wanted):
            if not start <= offset <= offset + n <= start + len(block):
                start, end = offset, offset + n
                for other, length in wanted[number + 1 : number + _MOST_JOINED]:
                    if not end <= other <= end + _GAP_NBYTES or other + length > start + _BLOCK_NBYTES:
                        break
                    end = other + length
                block = self.read(start, end - start)
            found.append(block[offset - start : offset - start + n])
        return found

    def close(self) -> None:
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def __del__(self) -> None:
        if getattr(self, "_descriptor", None) is not None:
            self.close()

    def __reduce__(self) -> tuple[object, ...]:
        return (PathSource, (self.path, self.name))
