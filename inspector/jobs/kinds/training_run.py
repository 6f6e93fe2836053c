"""The checkpoints of one training, measured as one run; of a folder of the server first what lies in it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from inspector.checkpoint.source import PathSource
from inspector.checkpoint.types import Checkpoint
from inspector.errors import LimitExceeded, ReadError
from inspector.jobs.asked import RunRef
from inspector.jobs.bench import Bench
from inspector.jobs.folder_state import state_of_folder
from inspector.limits import DEFAULT_LIMITS
from inspector.readers import open_checkpoint
from inspector.run.files import EventFiles, RunFile, files_at
from inspector.run.measure import measure_run
from inspector.run.report import RunReport
from inspector.run_files import files_below


def listed(bench: Bench, run: RunRef) -> tuple[RunRef, int]:
    """The folder with a digest of its files' names, sizes and times, and their bytes. Raises ReadError."""
    state = state_of_folder(_present(run), most=DEFAULT_LIMITS.members)
    if state.count > DEFAULT_LIMITS.members:
        raise LimitExceeded(
            f"{run.name} holds more than {DEFAULT_LIMITS.members:,} files.", hint="Choose a folder below it."
        )
    return replace(run, digest=state.digest), state.nbytes


def measured(bench: Bench, run: RunRef) -> RunReport:
    """Raises UsageError where nothing of it is a checkpoint, as `measure_run`."""
    files, logs = _files(run)
    return measure_run(files, logs, progress=bench.progress)


def _files(run: RunRef) -> tuple[list[RunFile], list[EventFiles]]:
    place = _present(run)
    if run.within is None:
        # As a source, not a path: what lies beside it in the store belongs to other visitors.
        whole = RunFile(name=run.name, opening=partial(_opened, place, run.name), asked=True)
        return files_at(place, run.name, whole)
    return files_below(place, within=run.within)


def _opened(place: Path, name: str) -> Checkpoint:
    return open_checkpoint(PathSource(place, name))


def _present(run: RunRef) -> Path:
    if not run.path.exists():
        raise ReadError(f"{run.name} is not on the server any more.", hint="Choose the checkpoints again.")
    return run.path
