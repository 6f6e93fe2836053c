"""The beginnings of many files, fetched while one of them is read: a round trip is then paid once, not 163 times."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from inspector.errors import InspectorError
from inspector.readers.folders.sharded.layout import shard_name
from inspector.remote.ranged import RangedSource

# At 50 ms a request, 163 shards are half a second so.
_AHEAD = 40
_AT_ONCE = 20

Source = TypeVar("Source", bound=RangedSource)


class Ahead(Generic[Source]):
    """Sources by their paths, each made once. paths: in the order in which they will be asked for."""

    def __init__(self, paths: Iterable[str], make: Callable[[str], Source]) -> None:
        self._make = make
        self._shards = [path for path in paths if _is_shard(path)]
        self._places = {path: place for place, path in enumerate(self._shards)}
        self._sources: dict[str, Source] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def open(self, path: str) -> Source:
        """Its source. Of a shard, the next ones' beginnings are fetched too, several at the same time."""
        place = self._places.get(path)
        if place is not None:
            for following in self._shards[place : place + _AHEAD]:
                self._warm(following)
        return self._source(path)

    def opened(self) -> tuple[Source, ...]:
        """Those that were made."""
        with self._lock:
            return tuple(self._sources.values())

    def close(self) -> None:
        """End what fetches ahead."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def _source(self, path: str) -> Source:
        with self._lock:
            known = self._sources.get(path)
            if known is None:
                known = self._sources[path] = self._make(path)
            return known

    def _warm(self, path: str) -> None:
        with self._lock:
            if path in self._sources:
                return
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="inspector-shards")
            pool = self._pool
        try:
            source = self._source(path)
        except InspectorError:
            return  # Of this one alone, and said where it is opened itself.
        pool.submit(source.warm)


def _is_shard(path: str) -> bool:
    name = shard_name(path.rpartition("/")[2])
    return name is not None and name.count > 1
