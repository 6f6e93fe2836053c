"""Which of many files are the same bytes: said of each of them, with the path of another.

Only files of one length can be. Their ends are held against each other first, which tell most checkpoints of one
network apart (torch's zip archives end with the checksums of their records), or in a zip archive the checksums that it
has of them, so that nothing is unpacked for it; the rest is read whole, up to a limit.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from inspector.checkpoint.digest import sha256_of
from inspector.checkpoint.source import ByteSource, PathSource
from inspector.errors import InspectorError
from inspector.findings import FindingKind, Severity
from inspector.limits import Limits
from inspector.path_text import path_of_text
from inspector.readers.archives.archive_folder import ArchiveFolder
from inspector.readers.archives.zip_members import Member
from inspector.readers.inside import Inside, look_inside
from inspector.survey.report import SurveyRow
from inspector.survey.row import with_findings
from inspector.units import counted

SAME_BYTES = FindingKind("same-bytes", Severity.NOTICE, "Another file of the table is the same, byte for byte")

Key = TypeVar("Key", int, str)
_END_NBYTES = 1 << 16
# One in another, as in x.tar.gz.xz.
_MOST_STREAMS = 3
# Of all files that are read whole: some seconds. What is beyond is not said to be a copy, nor that it is none.
_MOST_NBYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Of a survey, by the paths of its rows.

    open: the bytes at a path; None where it is no file of its own. close: lets go of what was opened there. mark: what
    files of one content have in common and is known without reading them; "" where nothing is.
    """

    open: Callable[[str], ByteSource | None]
    close: Callable[[str], None] = lambda _: None
    mark: Callable[[str], str] = lambda _: ""


def in_folder(folder: Path) -> Files:
    """Files of a folder, as the survey's rows call them."""

    def opening(path: str) -> ByteSource | None:
        place = folder / path_of_text(path)
        return PathSource(place) if place.is_file() and not place.is_symlink() else None

    return Files(open=opening)


def in_archive(source: ByteSource, limits: Limits) -> Files:
    """Members of an archive. A compressed one is unpacked as a whole, within the limits of opening it: once, and only
    where something is asked of a member."""

    @cache
    def inside() -> Inside | None:
        # What refuses once is not unpacked again for each member; the archive's own row says why.
        with suppress(InspectorError, OSError):
            found = look_inside(source, limits, at_end=True)
            for _ in range(_MOST_STREAMS):
                if found is None or found.stream is None:
                    return found
                found = look_inside(found.stream, limits, at_end=True)
        return None

    @cache
    def names() -> frozenset[str]:
        held = inside()
        return frozenset(held.names) if held is not None else frozenset()

    def name_of(path: str) -> str:
        return path.removeprefix(f"{source.name}/")

    def opening(path: str) -> ByteSource | None:
        held, name = inside(), name_of(path)
        return held.open(name) if held is not None and name in names() else None

    def close(path: str) -> None:
        held = inside()
        if held is not None:
            held.close(name_of(path))

    def mark(path: str) -> str:
        held, name = inside(), name_of(path)
        folder = held.folder if held is not None and name in names() else None
        member = folder.member(name) if isinstance(folder, ArchiveFolder) else None
        return f"{member.crc:08x}" if isinstance(member, Member) else ""

    return Files(open=opening, close=close, mark=mark)


def say_copies(rows: Sequence[SurveyRow], files: Files, *, most: int = _MOST_NBYTES) -> tuple[SurveyRow, ...]:
    """The same rows, each copy with a finding that names another. most: bytes that are read whole."""
    found = {}
    for paths in _same(rows, files, most):
        for path in paths:
            others = [other for other in paths if other != path]
            more = f" and {counted(len(others) - 1, 'other', 'others')}" if len(others) > 1 else ""
            found[path] = SAME_BYTES.found(f"Byte for byte the same as {others[0]}{more}.", subjects=others)
    return tuple(with_findings(row, [found[row.path]]) if row.path in found else row for row in rows)


def _same(rows: Sequence[SurveyRow], files: Files, most: int) -> Iterator[list[str]]:
    left = most
    for nbytes, paths in _groups((row.nbytes, row.path) for row in rows if row.nbytes):
        alike = _groups((_mark(path, files) or _of(path, files, _ends), path) for path in paths)
        for _, some in alike:
            if nbytes * len(some) > left:
                continue
            left -= nbytes * len(some)
            for _, equal in _groups((_of(path, files, sha256_of), path) for path in some):
                yield equal


def _groups(pairs: Iterable[tuple[Key, str]]) -> list[tuple[Key, list[str]]]:
    """Of two and more, the smallest key first; what could not be read ("") is like nothing."""
    groups: defaultdict[Key, list[str]] = defaultdict(list)
    for key, path in pairs:
        groups[key].append(path)
    return [(key, groups[key]) for key in sorted(groups) if key and len(groups[key]) > 1]


def _mark(path: str, files: Files) -> str:
    try:
        return files.mark(path)
    except (InspectorError, OSError):
        return ""


def _of(path: str, files: Files, digest: Callable[[ByteSource], str]) -> str:
    try:
        source = files.open(path)
        if source is None:
            return ""
        try:
            return digest(source)
        finally:
            source.close()
            files.close(path)
    except (InspectorError, OSError):
        return ""  # Its own row says what is wrong with it.


def _ends(source: ByteSource) -> str:
    size = min(_END_NBYTES, source.size)
    return hashlib.sha256(source.read(0, size) + source.read(source.size - size, size)).hexdigest()
