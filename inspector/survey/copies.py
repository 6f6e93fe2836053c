"""Which of many files are the same bytes: said of each of them, with the path of another.

Only files of one length can be. Their ends are held against each other first, which tell most checkpoints of one
network apart (torch's zip archives end with the checksums of their records); the rest is read whole, up to a limit.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from inspector.checkpoint.digest import sha256_of
from inspector.checkpoint.source import ByteSource, PathSource
from inspector.errors import InspectorError
from inspector.findings import FindingKind, Severity
from inspector.limits import Limits
from inspector.readers.inside import look_inside
from inspector.survey.report import SurveyRow
from inspector.survey.row import with_findings
from inspector.units import counted

SAME_BYTES = FindingKind("same-bytes", Severity.NOTICE, "Another file of the table is the same, byte for byte")

Key = TypeVar("Key", int, str)
_END_NBYTES = 1 << 16
# Of all files that are read whole: some seconds. What is beyond is not said to be a copy, nor that it is none.
_MOST_NBYTES = 1 << 30

#: The bytes at a row's path; None where it is no file of its own. Whoever opens it lets go of it.
Opening = Callable[[str], ByteSource | None]


def in_folder(folder: Path) -> Opening:
    """Files of a folder, as the survey's rows call them."""

    def opening(path: str) -> ByteSource | None:
        place = folder / path
        return PathSource(place) if place.is_file() and not place.is_symlink() else None

    return opening


@contextmanager
def in_archive(source: ByteSource, limits: Limits) -> Iterator[Opening]:
    """Members of an archive; none of a compressed one, which would be unpacked again for each."""
    inside = look_inside(source, limits, at_end=True)
    names = frozenset(inside.names) if inside is not None and inside.stream is None else frozenset()

    def opening(path: str) -> ByteSource | None:
        name = path.removeprefix(f"{source.name}/")
        return inside.open(name) if inside is not None and name in names else None

    yield opening


def say_copies(rows: Sequence[SurveyRow], opening: Opening, *, most: int = _MOST_NBYTES) -> tuple[SurveyRow, ...]:
    """The same rows, each copy with a finding that names another. most: bytes that are read whole."""
    found = {}
    for paths in _same(rows, opening, most):
        for path in paths:
            others = [other for other in paths if other != path]
            more = f" and {counted(len(others) - 1, 'other', 'others')}" if len(others) > 1 else ""
            found[path] = SAME_BYTES.found(f"Byte for byte the same as {others[0]}{more}.", subjects=others)
    return tuple(with_findings(row, [found[row.path]]) if row.path in found else row for row in rows)


def _same(rows: Sequence[SurveyRow], opening: Opening, most: int) -> Iterator[list[str]]:
    left = most
    for nbytes, paths in _groups((row.nbytes, row.path) for row in rows if row.nbytes):
        alike = _groups((_of(path, opening, _ends), path) for path in paths)
        for _, some in alike:
            if nbytes * len(some) > left:
                continue
            left -= nbytes * len(some)
            for _, equal in _groups((_of(path, opening, sha256_of), path) for path in some):
                yield equal


def _groups(pairs: Iterable[tuple[Key, str]]) -> list[tuple[Key, list[str]]]:
    """Of two and more, the smallest key first; what could not be read ("") is like nothing."""
    groups: defaultdict[Key, list[str]] = defaultdict(list)
    for key, path in pairs:
        groups[key].append(path)
    return [(key, groups[key]) for key in sorted(groups) if key and len(groups[key]) > 1]


def _of(path: str, opening: Opening, digest: Callable[[ByteSource], str]) -> str:
    try:
        source = opening(path)
        if source is None:
            return ""
        try:
            return digest(source)
        finally:
            source.close()
    except (InspectorError, OSError):
        return ""  # Its own row says what is wrong with it.


def _ends(source: ByteSource) -> str:
    size = min(_END_NBYTES, source.size)
    return hashlib.sha256(source.read(0, size) + source.read(source.size - size, size)).hexdigest()
