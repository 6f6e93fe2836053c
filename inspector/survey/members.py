"""The members of an archive as rows of their own: each is looked at by its content, wherever it lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from inspector.checkpoint.source import ByteSource
from inspector.errors import InspectorError
from inspector.limits import Limits
from inspector.readers.inside import Inside, look_inside
from inspector.readers.opening import open_source
from inspector.survey.report import RowKind, SurveyRow
from inspector.survey.row import Opened, crashed_row, open_row, unreadable_row, with_findings
from inspector.survey.unclaimed import observe_unclaimed

_MOST_LEVELS = 6
_MOST_MEMBERS = 200_000
# By these names an archive is no checkpoint that somebody would load; whether it holds one, its members say.
_ARCHIVE_SUFFIXES = (".tar", ".zip", ".tgz", ".gz", ".bz2", ".xz")


@dataclass(slots=True)
class _Left:
    """How many more members are looked at, of one file and all archives in it."""

    members: int = _MOST_MEMBERS


def survey_path(
    root: Path, path: str, limits: Limits, *, digest: bool = False
) -> tuple[tuple[SurveyRow, ...], tuple[str, ...]]:
    """The row of one file or folder under root, behind it those of the members of an archive; and the files whose whole
    content is in it (relative to it). Raises nothing for what the file contains."""
    place = root / path
    opened = open_row(place, path, limits, digest=digest)
    if place.is_dir():
        return (opened.row,), opened.parts
    return with_members(place, opened, limits), opened.parts


def with_members(place: Path, opened: Opened, limits: Limits) -> tuple[SurveyRow, ...]:
    """The row of a file, and behind it one for every member that is a checkpoint or could not be looked at."""
    try:
        source = open_source(place, limits=limits)
    except InspectorError:
        return (opened.row,)  # Which says so.
    try:
        return _rows(source, opened, limits, _Left(), 0)
    finally:
        source.close()


def _rows(source: ByteSource, opened: Opened, limits: Limits, left: _Left, level: int) -> tuple[SurveyRow, ...]:
    row = opened.row
    try:
        inside = look_inside(source, limits, at_end=row.kind is not RowKind.CHECKPOINT or opened.polyglot)
        if inside is None:
            return (row,)
        if level >= _MOST_LEVELS:
            return row, _refused(row.path, f"It lies {level} archives deep, and what is in it was not looked at.")
        # An opened checkpoint has the archive's findings among its own.
        row = row if row.kind is RowKind.CHECKPOINT else with_findings(_as_archive(row), inside.findings)
        opened = replace(opened, row=with_findings(row, inside.notes))
        if inside.stream is not None:
            try:
                opened = replace(opened, row=_with_stream(opened.row, inside.stream, limits))
                return _rows(inside.stream, opened, limits, left, level + 1)
            finally:
                inside.stream.close()
        members = tuple(_members(inside, opened, limits, left, level))
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


def _members(inside: Inside, opened: Opened, limits: Limits, left: _Left, level: int) -> Iterator[SurveyRow]:
    above = opened.row.path
    shown = {inside.root + part for part in opened.parts}
    for name in inside.names:
        if left.members <= 0:
            yield _refused(above, f"Members behind the first {_MOST_MEMBERS:,} were not looked at.")
            return
        left.members -= 1
        path = f"{above}/{name}"
        try:
            source = inside.open(name)
            # What the row above shows needs none of its own, unless it is an archive with more in it.
            known = name in shown and look_inside(source, limits, at_end=False) is None
            rows = () if known else _rows(source, open_row(source, path, limits), limits, left, level + 1)
        except InspectorError as error:
            rows = (_refused(path, str(error)),)
        finally:
            inside.close(name)
        # Nobody takes a stray member for a checkpoint by its name.
        rows = () if inside.strays and rows and rows[0].finding == "no-checkpoint" else rows
        yield from (row for row in rows if row.kind is RowKind.CHECKPOINT or row.worst is not None)


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
    if row.finding != "no-checkpoint" or not name.endswith(_ARCHIVE_SUFFIXES) or name.endswith(".pth.tar"):
        return row
    return replace(row, kind=RowKind.OTHER, worst=None, finding="", counts=())


def _refused(path: str, says: str) -> SurveyRow:
    return unreadable_row(path, 0, "not-examined", says)
