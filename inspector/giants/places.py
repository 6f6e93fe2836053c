"""Where the bytes of a piece lie: as few files of a checkpoint as it needs, by what they are known again, and how they
travel to whoever reads them."""

from __future__ import annotations

import io
import os
import pickle
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from inspector.checkpoint.joined_source import JoinedSource
from inspector.checkpoint.source import ByteSource
from inspector.readers.remote import own_client
from inspector.remote.address import WebAddress
from inspector.remote.buckets import BucketSource
from inspector.remote.client import Client
from inspector.remote.source import HttpSource, Identity

#: (path or address, what changes with its content) of each file.
Known = tuple[tuple[str, str], ...]


def narrowed(source: ByteSource, low: int, high: int) -> tuple[ByteSource, int]:
    """The parts of a joined source that hold bytes low to high, and how many bytes lie before them."""
    if not isinstance(source, JoinedSource) or not source.parts:
        return source, 0
    first = max(0, bisect_right(source.starts, low) - 1)
    last = max(first, bisect_right(source.starts, max(low, high - 1)) - 1)
    before = source.starts[first]
    if first == last:
        inner, more = narrowed(source.parts[first], low - before, high - before)
        return inner, before + more
    return JoinedSource(source.parts[first : last + 1], source.name), before


def part_of(source: ByteSource, at: int) -> int:
    """Which part of a joined source a byte lies in; 0 for others."""
    return max(0, bisect_right(source.starts, at) - 1) if isinstance(source, JoinedSource) else 0


def known_by(source: ByteSource) -> Known | None:
    """What tells whether the same bytes are there again, without reading them; None where nothing does.

    Raises OSError where a file is not there.
    """
    found: dict[str, str] = {}
    for leaf in _leaves(source):
        path = getattr(leaf, "path", None)
        if isinstance(leaf, HttpSource):
            told = leaf.identity
            found[leaf.web.text] = f"{told.size} {told.etag} {told.modified}"
        elif isinstance(leaf, BucketSource):
            found[leaf.file.address] = f"{leaf.file.size} {leaf.file.tags}"
        elif isinstance(path, str):
            status = os.stat(path)  # noqa: PTH116 as the source has it
            found[path] = f"{status.st_size} {status.st_mtime_ns}"
        else:
            return None
    return tuple(sorted(found.items()))


def is_far(source: ByteSource) -> bool:
    """Whether any of its bytes come through a network."""
    return any(getattr(leaf, "distant", False) for leaf in _leaves(source))


def buckets_of(source: ByteSource) -> Iterator[BucketSource]:
    """The objects in buckets among its files: their store says whether they changed, web servers with every answer."""
    for leaf in _leaves(source):
        if isinstance(leaf, BucketSource):
            yield leaf


def _leaves(source: ByteSource) -> Iterator[ByteSource]:
    inner = getattr(source, "inner", None) or getattr(source, "file", None)
    pieces = (piece.source for piece in getattr(source, "pieces", ()) if piece.source is not None)
    below = (*getattr(source, "parts", ()), *pieces, *(() if not hasattr(inner, "read_many") else (inner,)))
    if not below:
        yield source
    for one in below:
        yield from _leaves(one)


class SentSource:
    """A source that is opened where it is first read: what cannot be opened there is an answer, as all that is read is.

    An address travels without the sender's credentials; whoever reads it has its own.
    """

    def __init__(self, source: ByteSource | None, name: str, size: int, packed: bytes = b"") -> None:
        self.name = name
        self.size = size
        self._source = source
        self._packed = packed
        self._lock = threading.Lock()

    @property
    def source(self) -> ByteSource:
        """Raises as opening it does."""
        with self._lock:
            if self._source is None:
                self._source = pickle.loads(self._packed)
            return self._source

    def read(self, offset: int, n: int) -> bytes:
        return self.source.read(offset, n)

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        return self.source.read_many(ranges)

    def close(self) -> None:
        # Whoever shares it still reads; what came by post is closed with the last who has it.
        return None

    def __reduce__(self) -> tuple[object, ...]:
        packed = self._packed
        if self._source is not None:
            written = io.BytesIO()
            _Pickler(written).dump(self._source)
            packed = written.getvalue()
        return (SentSource, (None, self.name, self.size, packed))


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, HttpSource):
            return (_own_source, (obj.web, obj.name, obj.identity))
        return NotImplemented


def _own_source(web: WebAddress, name: str, identity: Identity) -> HttpSource:
    client = own_client()
    # Nobody reads these numbers again: nothing of them is kept on disk.
    return HttpSource(web, name=name, client=Client(replace(client.policy, spool_nbytes=0)), identity=identity)
