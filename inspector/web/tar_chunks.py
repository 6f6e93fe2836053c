"""A folder of the server as the bytes of one tar, as a browser sends a folder that is dropped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from inspector.checkpoint.sent_folder import BLOCK, member_header
from inspector.checkpoint.source import PathSource

_PIECE = 8 << 20


def tar_chunks(folder: Path) -> tuple[int, Iterator[bytes]]:
    """(bytes in all, the bytes piece by piece). Regular files alone, in order of their paths: links lead elsewhere.

    Raises ReadError, while it is read, where a file changed or went.
    """
    members = [(member_header(path.relative_to(folder).as_posix(), size), path, size) for path, size in _files(folder)]
    nbytes = sum(len(header) + size + -size % BLOCK for header, _, size in members) + 2 * BLOCK
    return nbytes, _chunks(members)


def _files(folder: Path) -> list[tuple[Path, int]]:
    found = []
    for here, below, names in os.walk(folder, followlinks=False):
        below.sort()
        found += [
            (path, path.stat().st_size)
            for name in sorted(names)
            if (path := Path(here, name)).is_file() and not path.is_symlink()
        ]
    return found


def _chunks(members: list[tuple[bytes, Path, int]]) -> Iterator[bytes]:
    for header, path, size in members:
        yield header
        source = PathSource(path)
        try:
            for offset in range(0, size, _PIECE):
                yield source.read(offset, min(_PIECE, size - offset))
        finally:
            source.close()
        yield bytes(-size % BLOCK)
    yield bytes(2 * BLOCK)
