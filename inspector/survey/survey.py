"""Walk a tree of mixed files and open each of them, folders that are one checkpoint as one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

from inspector.errors import ReadError
from inspector.findings import Severity
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.progress import Progress, silent
from inspector.readers import claims_folder
from inspector.side_files import PathKind, kind_of_path, shown_name
from inspector.survey.report import RowKind, Survey, SurveyRow
from inspector.survey.row import survey_path
from inspector.units import counted

_MOST_LEVELS = 64
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
    """Open every file below root. Nothing in them is executed.

    jobs: processes that read side by side; a file that takes one of them down costs its own row.
    each: called with every row as soon as it is there, in path order. progress: in files.
    Hidden files and folders are looked at too. Symbolic links are not followed: what they point to lies elsewhere.
    Raises ReadError when root is no folder.
    """
    if kind_of_path(root) is not PathKind.FOLDER:
        raise ReadError(f"{shown_name(root)} is no folder.", hint="Name a folder; one file is for `open`.")
    place = Path(root)
    began = time.monotonic()
    skipped: list[str] = []
    units, members = _units(place, limits, skipped)
    rows: list[SurveyRow] = []
    covered: set[str] = set()
    for number, (row, parts) in enumerate(_rows(place, units, limits, digest, jobs)):
        progress(number, len(units), row.path)
        inside = f"{row.path}/" if row.path != "." else ""
        is_folder = row.path in members
        if is_folder and row.kind is RowKind.CHECKPOINT:
            covered.update(inside + part for part in parts)
        if row.path in covered and not is_folder:
            continue
        rows.append(row)
        if each is not None:
            each(row)
    progress(len(units), len(units), "done")
    return Survey(
        name=place.name or str(place), rows=tuple(rows), skipped=tuple(skipped), seconds=time.monotonic() - began
    )


def _units(root: Path, limits: Limits, skipped: list[str]) -> tuple[list[str], set[str]]:
    """Relative paths to open, a folder that is one checkpoint before the files in it; and which are folders."""
    units: list[str] = []
    folders: set[str] = set()
    links = special = 0
    for here, below, names in os.walk(root, followlinks=False):
        inside = Path(here).relative_to(root)
        links += sum((Path(here) / name).is_symlink() for name in below)
        below[:] = sorted(name for name in below if not (Path(here) / name).is_symlink())
        if len(inside.parts) >= _MOST_LEVELS and below:
            skipped.append(f"Folders more than {_MOST_LEVELS} levels deep, first {inside}.")
            below[:] = []
        if claims_folder(Path(here), limits=limits):
            units.append(inside.as_posix())
            folders.add(inside.as_posix())
        for name in sorted(names):
            path = Path(here) / name
            if path.is_symlink():
                links += 1
            elif path.is_file():
                units.append((inside / name).as_posix())
            else:
                special += 1
        if len(units) > limits.members:
            skipped.append(f"Everything after the first {limits.members:,} files.")
            break
    if links:
        skipped.append(f"{links:,} symbolic links, which point elsewhere.")
    if special:
        skipped.append(f"{counted(special, 'device, socket or pipe', 'devices, sockets or pipes')}.")
    return units, folders


_Answer = tuple[SurveyRow, tuple[str, ...]]


def _rows(root: Path, units: Sequence[str], limits: Limits, digest: bool, jobs: int) -> Iterator[_Answer]:
    work = partial(survey_path, root, limits=limits, digest=digest)
    if jobs <= 1 or len(units) < _FEW:
        yield from map(work, units)
        return
    others, whole = set(multiprocessing.active_children()), False
    # Spawned, not forked: the caller may have threads.
    pool = ProcessPoolExecutor(
        max_workers=jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_leave_ending_to_caller
    )
    try:
        waiting: list[Future[_Answer]] = [pool.submit(work, unit) for unit in units]
        for unit, answer in zip(units, waiting, strict=True):
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


def _alone(work: Callable[[str], _Answer], unit: str) -> _Answer:
    """One file in a process of its own."""
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(work, unit).result()
        except BrokenProcessPool:
            row = SurveyRow(
                path=unit, nbytes=0, kind=RowKind.UNREADABLE, worst=Severity.ERROR, finding="internal-error",
                says="Reading it ended the process that read it. Please report this.",
                counts=((Severity.ERROR.value, 1),),
            )  # fmt: skip
            return row, ()
