"""The members of an archive as rows of their own: each is looked at by its content, wherever it lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from inspector.checkpoint.source import ByteSource
from inspector.errors import InspectorError, ReadError
from inspector.limits import Limits
from inspector.path_text import path_text
from inspector.progress import Progress, silent
from inspector.readers.inside import Inside, look_inside
from inspector.readers.opening import open_source
from inspector.survey.kinds import NO_CHECKPOINT, NOT_EXAMINED
from inspector.survey.report import RowKind, SurveyRow
from inspector.survey.row import Opened, Reading, crashed_row, open_row, unreadable_row, with_findings
from inspector.survey.unclaimed import observe_unclaimed

_MOST_LEVELS = 6
_MOST_MEMBERS = 200_000
# By these names an archive is no checkpoint that somebody would load; whether it holds one, its members say.
_ARCHIVE_SUFFIXES = (".tar", ".zip", ".tgz", ".gz", ".bz2", ".xz")


@dataclass(slots=True)
class _Left:
    """How many more members are looked at, of one file and all archives in it. progress: in members of the file."""

    members: int = _MOST_MEMBERS
    progress: Progress = silent


def survey_path(place: Path, path: str, reading: Reading) -> tuple[tuple[SurveyRow, ...], tuple[str, ...]]:
    """The row of one file or folder, behind it those of the members of an archive; and the files whose whole content is
    in it (relative to it). path: as the rows call it. Raises nothing for what the file contains."""
    opened = open_row(place, path, reading)
    if place.is_dir():
        return (opened.row,), tuple(map(path_text, opened.parts))
    return with_members(place, opened, reading), opened.parts


def survey_source(
    source: ByteSource, path: str, reading: Reading, *, progress: Progress = silent
) -> tuple[SurveyRow, ...]:
    """The same of the bytes of one file, with progress over its members."""
    return _rows(source, open_row(source, path, reading), replace(reading, digest=False), _Left(progress=progress), 0)


def member_source(source: ByteSource, path: str, limits: Limits) -> ByteSource:
    """The bytes of one member, by its row's path behind the file's own: of archives in archives as well.

    Raises ReadError where there is none of that path; whoever has the source lets go of it.
    """
    for _ in range(_MOST_LEVELS + 1):
        inside = look_inside(source, limits, at_end=True)
        while inside is not None and inside.stream is not None:
            source = inside.stream
            inside = look_inside(source, limits, at_end=True)
        if inside is None:
            break
        # A member's own name may look like the path of one in an archive: the whole path counts first.
        above = [name for name in inside.names if path == name or path.startswith(f"{name}/")]
        if not above:
            break
        name = max(above, key=len)
        source, path = inside.open(name), path[len(name) + 1 :]
        if not path:
            return source
    raise ReadError("There is no such file in it.", hint="Choose one of the table.")


def with_members(place: Path, opened: Opened, reading: Reading) -> tuple[SurveyRow, ...]:
    """The row of a file, and behind it one for every member that is a checkpoint or could not be looked at."""
    try:
        source = open_source(place, limits=reading.limits)
    except InspectorError:
        return (opened.row,)  # Which says so.
    try:
        return _rows(source, opened, replace(reading, digest=False), _Left(), 0)
    finally:
        source.close()


def _rows(source: ByteSource, opened: Opened, reading: Reading, left: _Left, level: int) -> tuple[SurveyRow, ...]:
    row = opened.row
    try:
        inside = look_inside(source, reading.limits, at_end=row.kind is not RowKind.CHECKPOINT or opened.polyglot)
        if inside is None:
            return (row,)
        if level >= _MOST_LEVELS:
            return row, _refused(row.path, f"It lies {level} archives deep, and what is in it was not looked at.")
        # An opened checkpoint has the archive's findings among its own.
        row = row if row.kind is RowKind.CHECKPOINT else with_findings(_as_archive(row), inside.findings)
        opened = replace(opened, row=with_findings(row, inside.notes))
        if inside.stream is not None:
            try:
                opened = replace(opened, row=_with_stream(opened.row, inside.stream, reading.limits))
                return _rows(inside.stream, opened, reading, left, level + 1)
            finally:
                inside.stream.close()
        members = tuple(_members(inside, opened, reading, left, level))
        return (_with_worst(opened.row, members), *members)
    except InspectorError as error:
        return row, _refused(row.path, str(error))
    except Exception as error:  # noqa: BLE001 - a gate must not be passed because a file crashed its guard
        return row, crashed_row(row.path, 0, error)


def _with_stream(row: SurveyRow, stream: ByteSource, limits: Limits) -> SurveyRow:
    """The row of a compressed file that no reader claims, with what comes out of it looked at."""
    if row.kind is RowKind.CHECKPOINT:
        return row
    return with_findings(row, observe_unclaimed(stream, stream.name, limits))


def _members(inside: Inside, opened: Opened, reading: Reading, left: _Left, level: int) -> Iterator[SurveyRow]:
    above = opened.row.path
    shown = {inside.root + part for part in opened.parts}
    for number, name in enumerate(inside.names):
        if level == 0:
            left.progress(number, len(inside.names), name)
        if left.members <= 0:
            yield _refused(above, f"Members behind the first {_MOST_MEMBERS:,} were not looked at.")
            return
        left.members -= 1
        path = f"{above}/{name}"
        try:
            source = inside.open(name)
            # What the row above shows needs none of its own, unless it is an archive with more in it.
            known = name in shown and look_inside(source, reading.limits, at_end=False) is None
            rows = () if known else _rows(source, open_row(source, path, reading), reading, left, level + 1)
        except InspectorError as error:
            rows = (_refused(path, str(error)),)
        finally:
            inside.close(name)
        if rows:
            rows = (with_findings(rows[0], inside.of_member(name)), *rows[1:])
        # Nobody takes a stray member for a checkpoint by its name.
        rows = () if inside.strays and rows and rows[0].finding == NO_CHECKPOINT.id else rows
        of_consequence = (row for row in rows if row.kind is RowKind.CHECKPOINT or row.worst is not None)
        yield from rows if reading.every and not inside.strays else of_consequence


def _with_worst(row: SurveyRow, members: tuple[SurveyRow, ...]) -> SurveyRow:
    """An archive is as bad as the worst that lies in it."""
    worst = max(members, key=lambda member: member.worst.rank if member.worst else -1, default=None)
    if worst is None or worst.worst is None or (row.worst is not None and row.worst.rank >= worst.worst.rank):
        return row
    says = f"{worst.path[len(row.path) + 1 :]} in it: {worst.says}"
    return replace(
        row, worst=worst.worst, finding=worst.finding, says=says, counts=row.counts or ((worst.worst.value, 1),)
    )


def _as_archive(row: SurveyRow) -> SurveyRow:
    """An archive by its name that holds no one checkpoint is no broken one: its members have rows of their own."""
    name = row.path.lower()
    if row.finding != NO_CHECKPOINT.id or not name.endswith(_ARCHIVE_SUFFIXES) or name.endswith(".pth.tar"):
        return row
    return replace(row, kind=RowKind.OTHER, worst=None, finding="", counts=(), findings=())


def _refused(path: str, says: str) -> SurveyRow:
    return unreadable_row(path, 0, NOT_EXAMINED, says)
