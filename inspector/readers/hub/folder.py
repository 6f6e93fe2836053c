"""A repository at one commit as a folder whose files are fetched by ranges, each as far as it is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inspector.checkpoint.source import ByteSource
from inspector.errors import ReadError
from inspector.readers.ahead import Ahead
from inspector.readers.hub.listing import Repository
from inspector.remote.client import Client
from inspector.remote.source import HttpSource, Identity


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
        self._ahead: Ahead[HttpSource] = Ahead(self._files, self._source)
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
        return self._ahead.open(path)

    def is_linked_out(self, path: str) -> bool:
        return False

    def close(self) -> None:
        """End what fetches ahead."""
        self._ahead.close()

    def _source(self, path: str) -> HttpSource:
        return HttpSource(
            self.repository.address_of(path),
            name=path.rpartition("/")[2],
            client=self.client,
            identity=Identity(size=self._files[path]),
        )
