"""The shards beside an index at a plain address: the files that it names, in its own folder of its own server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from urllib.parse import quote

from inspector.checkpoint.source import ByteSource
from inspector.errors import InspectorError, ReadError
from inspector.limits import Limits
from inspector.readers.folder import leads_outside
from inspector.readers.folders.sharded.layout import INDEX_NAME, looks_like_index, read_index
from inspector.remote.source import HttpSource

_HEAD_NBYTES = 4096
_AT_ONCE = 20


class WebFolder:
    """`inspector.readers.folder.Folder` of an index and the files that it names. Nothing lists such a folder: a file is
    there that its server sends, and what it refuses is told where it is opened. Each costs one request until its
    numbers are read."""

    kind = "address"

    def __init__(self, index: HttpSource, names: Sequence[str]) -> None:
        path, mark, query = index.web.target.partition("?")
        self._above, self._query = path.rpartition("/")[0], mark + query
        self._index = index
        self.name = self._above.rpartition("/")[2] or index.web.host_and_port
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="inspector-shards")
        # A name with a slash may lead to another folder, or server.
        safe = [name for name in dict.fromkeys(names) if "/" not in name and not leads_outside(name)]
        self._sources: dict[str, Future[HttpSource]] = {name: self._pool.submit(self._ask, name) for name in safe}

    def files(self) -> Mapping[str, int]:
        return {name: self.size_of(name) or 0 for name in (self._index.name, *self._sources)}

    def top(self) -> Mapping[str, int]:
        return self.files()

    def size_of(self, path: str) -> int | None:
        if path == self._index.name:
            return self._index.size
        if path not in self._sources:
            return None
        with suppress(InspectorError, CancelledError):
            return self._sources[path].result().size
        return 0

    def open(self, path: str) -> ByteSource:
        if path == self._index.name:
            return self._index
        if path not in self._sources:
            raise ReadError(f"{self._index.name} names no file {path[:200]!r} beside it.")
        return self._sources[path].result()

    def is_linked_out(self, path: str) -> bool:
        return False

    def sources(self) -> tuple[HttpSource, ...]:
        """The files that its server sends, the index first."""
        found = [self._index]
        for waiting in self._sources.values():
            with suppress(InspectorError, CancelledError):
                found.append(waiting.result())
        return tuple(found)

    def close(self) -> None:
        """Ask for nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, name: str) -> HttpSource:
        address = replace(self._index.web, target=f"{self._above}/{quote(name)}{self._query}")
        return HttpSource(address, name=name, client=self._index.client)


def folder_of_index(source: HttpSource, limits: Limits) -> WebFolder | None:
    """The folder of an index of shards; None for any other file. Raises as `read_index`."""
    if not INDEX_NAME.fullmatch(source.name) or not looks_like_index(source.read(0, min(_HEAD_NBYTES, source.size))):
        return None
    return WebFolder(source, read_index(source, source.name, limits).files)
