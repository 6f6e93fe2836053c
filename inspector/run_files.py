"""Which files the paths of a run mean: folders are walked, archives opened, event files beside them found."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from inspector.checkpoint.source import ByteSource, PathSource
from inspector.checkpoint.types import Checkpoint
from inspector.errors import RefusedContent, UsageError
from inspector.events.find import EventRun, event_runs_beside, find_event_runs, is_event_file
from inspector.limits import DEFAULT_LIMITS
from inspector.readers import claims_folder, open_checkpoint
from inspector.run.files import OF_ONE, EventFiles, RunFile, files_at
from inspector.side_files import PathKind, kind_of_path, shown_name
from inspector.survey.walk import Unit, Walk


def files_of(paths: Sequence[str]) -> tuple[list[RunFile], list[EventFiles]]:
    """Raises UsageError for a path that leads nowhere."""
    files: list[RunFile] = []
    logs: list[EventFiles] = []
    for path in paths:
        kind = kind_of_path(path)
        if kind is PathKind.NOTHING:
            raise UsageError(f"There is nothing called {shown_name(path)}.", hint="Check the path.")
        place = Path(path)
        if kind is PathKind.FOLDER and not claims_folder(path):
            found = files_below(place)
        else:
            name = shown_name(path)
            found = files_at(place, name, RunFile(name=name, opening=partial(open_checkpoint, path), asked=True))
            runs = () if is_event_file(name) else event_runs_beside(place).runs
            found = found[0], [*found[1], *map(_log, runs)]
        files += found[0]
        logs += found[1]
    # Files of one folder have the same logs beside them.
    return files, list({log.name: log for log in logs}.values())


def files_below(folder: Path, *, within: Path | None = None) -> tuple[list[RunFile], list[EventFiles]]:
    """Of a folder and those in it. within: what lies elsewhere, behind a link, is not read, and named; None for all of
    the machine. Raises ReadError for a folder that cannot be listed."""
    units = Walk(folder, DEFAULT_LIMITS, git=False).units
    whole = {f"{unit.path}/" for unit in units if unit.is_folder}
    whole |= {unit.path[: -len(name)] for unit in units for name in OF_ONE if unit.path.endswith(f"/{name}")}
    outside = [unit for unit in units if unit.row is None and not _is_within(unit, within)]
    if any(unit.is_folder and unit.place == folder for unit in units):
        return [_file(folder, folder.name, refuse=bool(outside))], []
    refused = {unit.path for unit in outside} | {path for path in whole if any(_in(unit, path) for unit in outside)}
    files = [_file(folder / path.rstrip("/"), path.rstrip("/"), refuse=path in refused) for path in sorted(whole)]
    logs: list[EventFiles] = []
    for unit in units:
        if unit.is_folder or unit.row is not None or _in(unit, tuple(whole)) or is_event_file(unit.place.name):
            continue
        if unit.path in refused:
            files.append(_file(unit.place, unit.path, refuse=True))
            continue
        found = files_at(unit.place, unit.path, _file(unit.place, unit.path))
        files += found[0]
        logs += found[1]
    for run in find_event_runs(folder).runs:
        paths = tuple(path for path in run.paths if within is None or path.resolve().is_relative_to(within))
        if paths:
            logs.append(_log(EventRun(name=run.name, paths=paths)))
    return files, logs


def _in(unit: Unit, folders: str | tuple[str, ...]) -> bool:
    return unit.path.startswith(folders)


def _is_within(unit: Unit, within: Path | None) -> bool:
    return within is None or unit.place.resolve().is_relative_to(within)


def _file(place: Path, name: str, *, refuse: bool = False) -> RunFile:
    if refuse:
        return RunFile(name=name, opening=partial(_refuse, name), asked=True)
    return RunFile(name=name, opening=partial(open_checkpoint, place))


def _refuse(name: str) -> Checkpoint:
    raise RefusedContent(f"{name} is a link out of the folder that this server opens to visitors.")


def _log(run: EventRun) -> EventFiles:
    return EventFiles(name=run.name, open=tuple(partial(_source, path) for path in run.paths))


def _source(path: Path) -> ByteSource:
    return PathSource(path)
