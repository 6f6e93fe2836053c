"""Which files the paths of a run mean: folders are walked, archives opened, event files beside them found."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from inspector.checkpoint.source import ByteSource, PathSource
from inspector.errors import UsageError
from inspector.events.find import event_runs_beside, find_event_runs, is_event_file
from inspector.limits import DEFAULT_LIMITS
from inspector.readers import claims_folder, open_checkpoint
from inspector.run.files import EventFiles, RunFile, files_at
from inspector.side_files import PathKind, kind_of_path, shown_name
from inspector.survey.walk import Walk

# A folder with one of these is one checkpoint: what it holds of the training is told beside the weights.
_OF_ONE = ("trainer_state.json",)


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
            found = _folder(place)
            runs = find_event_runs(place).runs
        else:
            name = shown_name(path)
            found = files_at(place, name, RunFile(name=name, opening=partial(open_checkpoint, path), asked=True))
            runs = () if is_event_file(name) else event_runs_beside(place).runs
        files += found[0]
        logs += found[1]
        logs += [EventFiles(name=run.name, open=tuple(partial(_source, one) for one in run.paths)) for run in runs]
    # Files of one folder have the same logs beside them.
    return files, list({log.name: log for log in logs}.values())


def _source(path: Path) -> ByteSource:
    return PathSource(path)


def _folder(folder: Path) -> tuple[list[RunFile], list[EventFiles]]:
    units = Walk(folder, DEFAULT_LIMITS, git=False).units
    whole = {f"{unit.path}/" for unit in units if unit.is_folder}
    whole |= {unit.path[: -len(name)] for unit in units for name in _OF_ONE if unit.path.endswith(f"/{name}")}
    files = [_file(folder / path.rstrip("/"), path.rstrip("/")) for path in sorted(whole)]
    logs: list[EventFiles] = []
    for unit in units:
        if (
            unit.is_folder
            or unit.row is not None
            or unit.path.startswith(tuple(whole))
            or is_event_file(unit.place.name)
        ):
            continue
        found = files_at(unit.place, unit.path, _file(unit.place, unit.path))
        files += found[0]
        logs += found[1]
    return files, logs


def _file(place: Path, name: str) -> RunFile:
    return RunFile(name=name, opening=partial(open_checkpoint, place))
