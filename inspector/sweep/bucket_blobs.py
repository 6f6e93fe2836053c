"""A store's files in a bucket: each a single PUT, so that it is there whole or not at all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NoReturn

from inspector.errors import ExportError, ReadError
from inspector.remote.bucket_refusals import refusal
from inspector.remote.buckets import system_of
from inspector.sweep.blobs import NoBlob, still_whole
from inspector.units import shorten_middle

# At 50 ms a request, ten thousand parts are read in half a minute so.
_AT_ONCE = 16


class BucketBlobs:
    """Below a prefix of s3://, gs:// or az://, with the credentials of whoever runs the command.

    Raises MissingLibrary without fsspec or the store's package.
    """

    distant = True

    def __init__(self, address: str) -> None:
        self.shown = shorten_middle(address.rstrip("/"), 200)
        self._system, self._root = system_of(address.rstrip("/"))

    def names(self, folder: str) -> list[str]:
        start = f"{self._root.rstrip('/')}/"
        found = self._asked(lambda: self._listed(f"{start}{folder}"), "listed")
        named = (str(path)[len(start) :] for path in found)
        return sorted(name for name in named if not name.rpartition("/")[2].startswith("."))

    def holds_others(self) -> bool:
        return bool(self._asked(lambda: self._listed(self._root, deep=False), "listed"))

    def read(self, name: str) -> bytes:
        # From 0 on, whereas of a whole object s3fs asks the length first.
        return bytes(self._asked(lambda: self._system.cat_file(f"{self._root}/{name}", start=0), "read", name))

    def read_each(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        # In order, and few ahead: what nobody takes is not fetched.
        waiting: deque[tuple[str, Future[bytes]]] = deque()
        left = deque(names)
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="inspector-store") as pool:
            try:
                while left or waiting:
                    while left and len(waiting) < 2 * _AT_ONCE:
                        name = left.popleft()
                        waiting.append((name, pool.submit(self.read, name)))
                    name, future = waiting.popleft()
                    yield name, future.result()
            finally:
                for _, future in waiting:
                    future.cancel()

    def write(self, name: str, data: bytes) -> None:
        try:
            self._system.pipe_file(f"{self._root}/{name}", data)
        except Exception as error:
            told = refusal(error)
            raise ExportError(
                f"The store {self.shown} cannot be written: {told.why}.",
                hint=f"{told.hint} {still_whole(full=told.full)}".strip(),
            ) from error

    def _listed(self, path: str, *, deep: bool = True) -> list[str]:
        # What another driver wrote meanwhile is not in a listing that was kept.
        self._system.invalidate_cache()
        try:
            return list(self._system.find(path) if deep else self._system.ls(path, detail=False))
        except FileNotFoundError:
            return []

    def _asked(self, ask: Callable[[], Any], done: str, name: str = "") -> Any:
        try:
            return ask()
        except Exception as error:  # noqa: BLE001 - packages of stores raise whatever they like
            self._refuse(error, done, name)

    def _refuse(self, error: Exception, done: str, name: str) -> NoReturn:
        told = refusal(error)
        says = f"The store {self.shown} cannot be {done}: {f'{name}: ' if name else ''}{told.why}."
        kind = NoBlob if isinstance(error, FileNotFoundError) else ReadError
        raise kind(says, hint=told.hint) from error
