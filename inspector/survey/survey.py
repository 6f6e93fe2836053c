"""Walk a tree of mixed files and open each of them, folders that are one checkpoint as one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from inspector.errors import ReadError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.progress import Progress, silent
from inspector.side_files import PathKind, kind_of_path, shown_name
from inspector.survey.kinds import INTERNAL_ERROR
from inspector.survey.members import survey_path
from inspector.survey.report import RowKind, Survey, SurveyRow
from inspector.survey.row import Reading, unreadable_row
from inspector.survey.walk import Unit, Walk

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
    began = time.monotonic()
    units, skipped, incomplete = _units(places, reading.limits, git=git, links=links)
    folders = {unit.path for unit in units if unit.is_folder}
    rows: list[SurveyRow] = []
    covered: set[str] = set()
    for number, (found, parts) in enumerate(_rows(units, reading, jobs)):
        first = found[0]
        progress(number, len(units), first.path)
        inside = f"{first.path}/" if first.path != "." else ""
        is_folder = first.path in folders
        if is_folder and first.kind is RowKind.CHECKPOINT:
            covered.update(inside + part for part in parts)
        if first.path in covered and not is_folder:
            continue
        for row in found:
            rows.append(replace(row, member=row.path[len(first.path) + 1 :]))
            if each is not None:
                each(rows[-1])
    progress(len(units), len(units), "done")
    first_place = places[0].where if places else Path()
    return Survey(
        name=first_place.name or str(first_place),
        rows=tuple(rows),
        skipped=skipped,
        incomplete=incomplete,
        seconds=time.monotonic() - began,
    )


def _units(
    places: Sequence[Place], limits: Limits, *, git: bool, links: bool
) -> tuple[list[Unit], tuple[str, ...], bool]:
    """What is opened of all places, each once; what was left out; and whether files may lie there."""
    units: dict[str, Unit] = {}
    skipped: list[str] = []
    incomplete = False
    for place in places:
        kind = kind_of_path(place.where)
        if kind is PathKind.FOLDER:
            walk = Walk(place.where, limits, place.shown, git=git, links=links)
            found = walk.units
            skipped += walk.skipped()
            incomplete |= walk.incomplete
        elif kind is PathKind.FILE:
            found = [Unit(path=place.shown or place.where.name, place=place.where)]
        else:
            what = "There is no file or folder" if kind is PathKind.NOTHING else "No file or folder is"
            raise ReadError(f"{what} {shown_name(place.where)}.", hint="Check the path.")
        for unit in found:
            # A folder that is one checkpoint has the name of what kept it from being listed, too.
            units.setdefault(f"{unit.path}\0{unit.is_folder}\0{unit.row is None}", unit)
    return list(units.values()), tuple(skipped), incomplete


_Answer = tuple[tuple[SurveyRow, ...], tuple[str, ...]]


def _rows(units: Sequence[Unit], reading: Reading, jobs: int) -> Iterator[_Answer]:
    work = partial(survey_path, reading=reading)
    if jobs <= 1 or len(units) < _FEW:
        yield from (((unit.row,), ()) if unit.row is not None else work(unit.place, unit.path) for unit in units)
        return
    others, whole = set(multiprocessing.active_children()), False
    # Spawned, not forked: the caller may have threads.
    pool = ProcessPoolExecutor(
        max_workers=jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_leave_ending_to_caller
    )
    try:
        waiting: list[Future[_Answer] | None] = [
            pool.submit(work, unit.place, unit.path) if unit.row is None else None for unit in units
        ]
        for unit, answer in zip(units, waiting, strict=True):
            if unit.row is not None or answer is None:
                yield ((unit.row,) if unit.row is not None else ()), ()
                continue
            try:
                yield answer.result()
            except BrokenProcessPool:
                # Somebody's file killed its process, and with it the pool: the rest goes on one by one.
                yield _alone(work, unit)
        whole = True
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        # Stopped, by a signal perhaps: a file that takes minutes must not keep the program from ending.
        for child in () if whole else set(multiprocessing.active_children()) - others:
            child.terminate()


def _leave_ending_to_caller() -> None:
    """Ctrl-C goes to all processes of a terminal; the caller ends these."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _alone(work: Callable[[Path, str], _Answer], unit: Unit) -> _Answer:
    """One file in a process of its own."""
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(work, unit.place, unit.path).result()
        except BrokenProcessPool:
            says = "Reading it ended the process that read it. Please report this."
            return (unreadable_row(unit.path, 0, INTERNAL_ERROR, says),), ()
