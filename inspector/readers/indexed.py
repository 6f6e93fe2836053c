"""An index of shards behind an address, in a bucket or on the hub, with the files beside it that it names: one
checkpoint for whoever goes over many files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from inspector.errors import InspectorError
from inspector.limits import Limits
from inspector.readers.folder import leads_outside
from inspector.readers.folders.sharded.layout import INDEX_NAME, looks_like_index, read_index
from inspector.readers.listed_folder import ListedFolder, RemoteFile
from inspector.remote.ranged import RangedSource

_HEAD_NBYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedFiles:
    """A `RemoteFile` of several: it is called by its index. shards: (name, file) of what lies beside it, as far as it
    is there."""

    name: str
    index: RemoteFile
    shards: tuple[tuple[str, RemoteFile], ...]

    @property
    def address(self) -> str:
        return self.index.address

    @property
    def size(self) -> int:
        return self.index.size + sum(file.size for _, file in self.shards)

    @property
    def tag(self) -> str:
        told = [(name, file.size, file.tag) for name, file in ((self.name, self.index), *self.shards)]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    def open(self) -> RangedSource:
        """The index alone."""
        return self.index.open()

    def folder(self) -> ListedFolder:
        """All of it, to be opened by its index."""
        above = self.address.partition("?")[0].rpartition("/")[0].rpartition("/")[2]
        return ListedFolder(above, {self.name: self.index, **dict(self.shards)})


def with_shards(
    index: RemoteFile, name: str, beside: Callable[[tuple[str, ...]], Mapping[str, RemoteFile]], limits: Limits
) -> RemoteFile:
    """The index with its shards; the file alone where it is no index, or nobody sends it, as its own row then says.

    beside: the files of these names in its folder, as far as they are there. Raises as that does.
    """
    if not INDEX_NAME.fullmatch(name):
        return index
    try:
        source = index.open()
        try:
            if not looks_like_index(source.read(0, min(_HEAD_NBYTES, source.size))):
                return index
            names = read_index(source, name, limits.metered()).files
        finally:
            source.close()
    except InspectorError:
        return index
    found = beside(tuple(one for one in dict.fromkeys(names) if not leads_outside(one) and one != name))
    return IndexedFiles(name=name, index=index, shards=tuple(sorted(found.items())))
