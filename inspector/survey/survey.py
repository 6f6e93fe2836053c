"""Walk a tree of mixed files and open each of them, folders that are one checkpoint as one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inspector.errors import ReadError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.path_text import path_text
from inspector.progress import Progress, silent
from inspector.readers.listed_folder import RemoteFile
from inspector.side_files import PathKind, kind_of_path, nothing_at, shown_name
from inspector.survey.report import RowKind, Survey, SurveyRow
from inspector.survey.row import Reading
from inspector.survey.swept import UnitRows, facts_of, places_of_part, sweep_units
from inspector.survey.unit_pieces import UnitPieces
from inspector.survey.walk import Unit, Units, Walk
from inspector.sweep.engines import engine_of
from inspector.sweep.piece import WHOLE, Part
from inspector.sweep.store import ResultStore

_FEW = 8


def survey_folder(
    root: str | os.PathLike[str],
    *,
    limits: Limits = DEFAULT_LIMITS,
    digest: bool = False,
    jobs: int = 1,
    each: Callable[[SurveyRow], None] | None = None,
    progress: Progress = silent,
) -> Survey:
    """Open every file below root, and every member of an archive. Nothing in them is executed.

    jobs: processes that read side by side; a file that takes one of them down costs its own row.
    each: called with every row as soon as it is there, in path order. progress: in files.
    Hidden files and folders are looked at too. A symbolic link to a file elsewhere is looked at under its own name; one
    to a folder is not followed. What cannot be looked at has a row that says so.
    Raises ReadError when root is no folder, or cannot be listed.
    """
    require_folder(root)
    reading = Reading(limits=limits, digest=digest)
    return survey_places((Place(where=Path(root)),), reading, jobs=jobs, each=each, progress=progress)


def require_folder(root: str | os.PathLike[str]) -> None:
    """Raise ReadError for what is no folder."""
    if kind_of_path(root) is not PathKind.FOLDER:
        raise ReadError(f"{shown_name(root)} is no folder.", hint="Name a folder; one file is for `open` or `check`.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A file or folder to look at. shown: what the rows call it, "" for a folder whose files are called by their path
    in it."""

    where: Path
    shown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """Where a survey runs. jobs: processes of this machine, 0 for one per processor. executor: as `engine_of` takes it.
    store: where results are kept, and taken from. part: the share that is looked at."""

    jobs: int = 1
    executor: str = ""
    store: ResultStore | None = None
    part: Part = WHOLE


class Rows:
    """Rows in path order, without files whose whole content is in the row of a folder before them.

    each: called with every row as soon as it is there.
    """

    def __init__(self, each: Callable[[SurveyRow], None] | None = None) -> None:
        self.rows: list[SurveyRow] = []
        self._each = each
        self._covered: set[str] = set()

    def add(self, is_folder: bool, found: UnitRows) -> None:
        """What one unit gave."""
        first = found.rows[0]
        inside = f"{first.path}/" if first.path != "." else ""
        if is_folder and first.kind is RowKind.CHECKPOINT:
            self._covered.update(inside + part for part in found.parts)
        if first.path in self._covered and not is_folder:
            return
        for row in found.rows:
            self.rows.append(replace(row, member=row.path[len(first.path) + 1 :]))
            if self._each is not None:
                self._each(self.rows[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is opened, in path order, before anything is. skipped: what was left out, and why; incomplete: files may lie
    there."""

    name: str
    units: Sequence[Unit]
    skipped: tuple[str, ...] = ()
    incomplete: bool = False


def survey_places(
    places: Sequence[Place],
    reading: Reading,
    *,
    git: bool = True,
    links: bool = True,
    jobs: int = 1,
    each: Callable[[SurveyRow], None] | None = None,
    progress: Progress = silent,
) -> Survey:
    """The same of any files and folders, one after the other; what is named twice is looked at once.

    git: look also at what git keeps for itself in the `.git` of a folder. links: follow links to files elsewhere.
    Raises ReadError for a place that is neither, or a folder that cannot be listed, before anything is opened.
    """
    plan = plan_places(places, reading.limits, git=git, links=links)
    return survey_plan(plan, reading, How(jobs=jobs), each=each, progress=progress)


def plan_places(
    places: Sequence[Place],
    limits: Limits,
    *,
    git: bool = True,
    links: bool = True,
    leave_out: Mapping[Path, str] | None = None,
    most: int | None = None,
    remote: Sequence[RemoteFile] = (),
) -> Plan:
    """What would be opened, the remote files after the others. leave_out, most: files of one folder, see `Walk`. Raises
    as `survey_places`."""
    aside = {place.resolve(): what for place, what in (leave_out or {}).items()}
    units, skipped, incomplete = _units(places, limits, git=git, links=links, aside=aside, most=most)
    name = (places[0].where.name or str(places[0].where)) if places else remote[0].address if remote else "."
    return Plan(name=name, units=Units(units, remote), skipped=skipped, incomplete=incomplete)


def survey_plan(
    plan: Plan,
    reading: Reading,
    how: How,
    *,
    pieces: UnitPieces | None = None,
    each: Callable[[SurveyRow], None] | None = None,
    unkept: Callable[[Unit, UnitRows], None] | None = None,
    progress: Progress = silent,
) -> Survey:
    """Open what the plan names, or the share of it that `how` says. pieces: of its units, where they are made
    already. unkept: called with what no store keeps, as it says something of the machine, or of a file that changed
    meanwhile."""
    began = time.monotonic()
    if pieces is None:
        pieces = UnitPieces(plan.units, facts_of(reading), kept=how.store is not None)
    places = places_of_part(plan.units, how.part) if how.part.of > 1 else range(len(plan.units))
    rows = Rows(each)
    alone = not how.executor and len(places) < _FEW
    with engine_of(how.executor, 1 if alone else how.jobs) as engine:
        for unit, found, kept in sweep_units(
            pieces, reading, engine=engine, places=places, store=how.store, progress=progress
        ):
            if not kept and unkept is not None:
                unkept(unit, found)
            rows.add(unit.is_folder, found)
    progress(len(places), len(places), "done")
    return Survey(
        name=plan.name,
        rows=tuple(rows.rows),
        skipped=plan.skipped,
        incomplete=plan.incomplete,
        seconds=time.monotonic() - began,
    )


def _units(
    places: Sequence[Place], limits: Limits, *, git: bool, links: bool, aside: Mapping[Path, str], most: int | None
) -> tuple[list[Unit], tuple[str, ...], bool]:
    """What is opened of all places, each once; what was left out; and whether files may lie there."""
    units: list[Unit] = []
    # Paths that are there: of files, of folders, and of what cannot be opened.
    known: dict[tuple[bool, bool], set[str]] = {}
    skipped: list[str] = []
    incomplete = False
    for place in places:
        kind = kind_of_path(place.where)
        if kind is PathKind.FOLDER:
            walk = Walk(place.where, limits, place.shown, git=git, links=links, leave_out=aside, most=most)
            found = walk.units
            skipped += walk.skipped()
            incomplete |= walk.incomplete
        elif kind is PathKind.FILE:
            found = [Unit(path=place.shown or path_text(place.where.name), where=str(place.where))]
        else:
            if kind is PathKind.NOTHING:
                raise nothing_at(place.where, what="file or folder")
            raise ReadError(f"No file or folder is {shown_name(place.where)}.", hint="Check the path.")
        # A folder that is one checkpoint has the name of what kept it from being listed, too.
        for unit in found:
            paths = known.setdefault((unit.is_folder, unit.row is None), set())
            if unit.path not in paths:
                paths.add(unit.path)
                units.append(unit)
    return units, tuple(dict.fromkeys(skipped)), incomplete
