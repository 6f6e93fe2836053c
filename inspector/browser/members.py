"""One file of an archive, read where it lies, as the app reads it once it is taken out."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.checkpoint.source import ByteSource, PathSource
from inspector.limits import DEFAULT_LIMITS
from inspector.path_text import path_of_text
from inspector.survey.members import member_source


def taken_out(path: str, member: str) -> ByteSource:
    """member: by its row's path, which begins with the archive's name. Raises ReadError where there is none; whoever
    has it closes it, and the archive with it."""
    archive = PathSource(path)
    try:
        inner = member_source(archive, member.removeprefix(f"{archive.name}/"), DEFAULT_LIMITS)
    except BaseException:
        archive.close()
        raise
    return _TakenOut(archive, inner, path_of_text(member).rpartition("/")[2])


class _TakenOut:
    """What is said of it is of a file by itself: nothing here tells of the archive."""

    def __init__(self, archive: ByteSource, member: ByteSource, name: str) -> None:
        self._archive, self._member = archive, member
        self.name, self.size = name, member.size

    def read(self, offset: int, n: int) -> bytes:
        return self._member.read(offset, n)

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        return self._member.read_many(ranges)

    def close(self) -> None:
        self._member.close()
        self._archive.close()
