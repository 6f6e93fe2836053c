"""A repository at one commit as a folder whose files are fetched by ranges, each as far as it is read."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from inspector.checkpoint.source import ByteSource
from inspector.errors import ReadError
from inspector.readers.folders.sharded.layout import shard_name
from inspector.readers.hub.listing import Repository
from inspector.remote.client import Client
from inspector.remote.source import HttpSource, Identity

# Beginnings of shards that are fetched while another one is read.
_AHEAD = 12
_AT_ONCE = 6


class HubFolder:
    """`inspector.readers.folder.Folder` over a listing. opened: paths of the files that were, in order.

    only: the files to be seen, None for all. A file that was opened is the same source again.
    """

    kind = "repository"

    def __init__(self, repository: Repository, client: Client, only: Iterable[str] | None = None) -> None:
        self.repository = repository
        self.client = client
        self.name = repository.place.repository
        kept = None if only is None else set(only)
        self._files = {p: n for p, n in repository.files.items() if kept is None or p in kept}
        self._sources: dict[str, HttpSource] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._shards = [path for path in self._files if _is_shard(path)]
        self.opened: dict[str, None] = {}

    def files(self) -> Mapping[str, int]:
        return self._files

    def top(self) -> Mapping[str, int]:
        return {path: nbytes for path, nbytes in self._files.items() if "/" not in path}

    def size_of(self, path: str) -> int | None:
        return self._files.get(path)

    def open(self, path: str) -> ByteSource:
        if path not in self._files:
            raise ReadError(f"{self.name} has no file {path[:200]!r}.")
        self.opened[path] = None
        if _is_shard(path):
            self._warm_from(path)
        return self._source(path)

    def is_linked_out(self, path: str) -> bool:
        return False

    def close(self) -> None:
        """End what fetches ahead."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def _source(self, path: str) -> HttpSource:
        with self._lock:
            known = self._sources.get(path)
            if known is None:
                known = self._sources[path] = HttpSource(
                    self.repository.address_of(path),
                    name=path.rpartition("/")[2],
                    client=self.client,
                    identity=Identity(size=self._files[path]),
                )
            return known

    def _warm_from(self, path: str) -> None:
        """The beginnings of this shard and the next ones, several at the same time."""
        at = self._shards.index(path)
        for following in self._shards[at : at + _AHEAD]:
            with self._lock:
                if following in self._sources:
                    continue
                if self._pool is None:
                    self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="inspector-shards")
                pool = self._pool
            pool.submit(self._source(following).warm)


def _is_shard(path: str) -> bool:
    name = shard_name(path.rpartition("/")[2])
    return name is not None and name.count > 1
