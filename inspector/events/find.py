"""Which event files lie in a folder, or beside a checkpoint. A folder that holds some is a run, as for TensorBoard."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from inspector.side_files import PathKind, kind_of_path

_MARK = "tfevents"
_PROFILE = ".profile-empty"
#: What is looked through at most: entries of folders, and levels below the first one.
MOST_ENTRIES = 20_000
MOST_LEVELS = 8
# Where loggers put them, beside a checkpoint or one or two folders above it: Lightning, transformers, TensorBoard's
# own default, and hand-written loops.
_FOLDERS = ("runs", "logs", "log", "tb", "tensorboard", "tb_logs", "lightning_logs", "events", "summary", "summaries")
_ABOVE = 2
_LEVELS_BESIDE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRun:
    """name: the folder below the one that was asked about, "." for itself. paths: in TensorBoard's order."""

    name: str
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRuns:
    """runs: by name. complete: False where a limit ended the search, or a folder could not be listed."""

    runs: tuple[EventRun, ...]
    complete: bool = True


def is_event_file(name: str) -> bool:
    """By TensorBoard's rule: the name alone."""
    return _MARK in name and not name.endswith(_PROFILE)


def find_event_runs(where: str | os.PathLike[str]) -> FoundRuns:
    """The runs in a folder and below it; a single file is a run of its own. Links to folders are not followed.

    Nothing found is an answer. Raises ReadError for a path that cannot be looked at.
    """
    place = Path(where)
    if kind_of_path(place) is PathKind.FILE:
        return FoundRuns(runs=(EventRun(name=place.name, paths=(place,)),))
    return _search([(place, MOST_LEVELS)], place)


def event_runs_beside(checkpoint: str | os.PathLike[str]) -> FoundRuns:
    """The runs that lie where a training would have put them that saved this file or folder: beside it, in folders of
    loggers' usual names there, and in those above it. That they belong together is not said by that."""
    place = Path(os.path.abspath(checkpoint))
    folders = [place] if kind_of_path(place) is PathKind.FOLDER else []
    folders += list(place.parents)[: _ABOVE + 1]
    wanted = [(folder, 0) for folder in folders]
    wanted += [(folder / name, _LEVELS_BESIDE) for folder in folders for name in _FOLDERS]
    return _search(wanted, folders[-1])


def _search(wanted: Iterable[tuple[Path, int]], root: Path) -> FoundRuns:
    """wanted: folders, and how many levels below each are looked at. root: what the runs' names are relative to."""
    runs: dict[Path, EventRun] = {}
    seen: set[Path] = set()
    left = MOST_ENTRIES
    complete = True
    waiting = list(wanted)
    while waiting and left > 0:
        folder, levels = waiting.pop(0)
        if folder in seen:
            continue
        seen.add(folder)
        files: list[Path] = []
        below: list[Path] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    if left <= 0:
                        break
                    if is_event_file(entry.name) and entry.is_file():
                        files.append(folder / entry.name)
                    elif levels and entry.is_dir(follow_symlinks=False):
                        below.append(folder / entry.name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            complete = False
            continue
        if files:
            name = folder.relative_to(root).as_posix() if folder.is_relative_to(root) else folder.name
            runs[folder] = EventRun(name=name, paths=tuple(sorted(files)))
        waiting += [(each, levels - 1) for each in sorted(below)]
    return FoundRuns(runs=tuple(sorted(runs.values(), key=lambda run: run.name)), complete=complete and left > 0)
