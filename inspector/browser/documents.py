"""What the command line prints with --json, byte for byte, for a page that has no command line."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.checkpoint.digest import with_digest
from inspector.errors import UnknownArchitecture
from inspector.overview import summarise
from inspector.progress import Progress, silent
from inspector.render.json import as_json, fields_of

if TYPE_CHECKING:
    from inspector.architectures.types import Recognition, Target
    from inspector.checkpoint.types import Checkpoint, StateDict
    from inspector.survey.report import Survey
    from inspector.survey.walk import Unit

#: Of a file whose reading ends a browser's stack, and of what takes more memory than a page has.
TOO_DEEP = "This file is nested more deeply than a page can follow."
APP_HINT = (
    "The app and the command line have the machine's whole memory: make app, or pip install . and inspector open FILE."
)


def open_json(checkpoint: Checkpoint) -> str:
    """As `inspector open FILE --json`."""
    return as_json({**fields_of(checkpoint), "overview": summarise(checkpoint)}) + "\n"


def identify_json(checkpoint: Checkpoint, progress: Progress = silent) -> str:
    """As `inspector identify FILE --json`. Raises UnknownArchitecture where there are no names."""
    checkpoint = with_digest(checkpoint, progress)
    return as_json(recognised(checkpoint, checkpoint.weights)) + "\n"


def diagnose_json(checkpoint: Checkpoint) -> str:
    """As `inspector diagnose FILE --json`. Raises UnknownArchitecture for a file that nothing recognised."""
    from inspector.keys.diagnose import diagnose

    return as_json(diagnose(checkpoint, own_target(checkpoint, checkpoint.weights))) + "\n"


def scan_json(folder: str, progress: Progress = silent, *, name: str = "", deep: Collection[str] = ()) -> str:
    """As `inspector scan FOLDER --json`. name, deep: as `survey_of` takes them."""
    from inspector.survey.survey import require_folder

    require_folder(folder)
    return as_json(survey_of(folder, progress, name=name, deep=deep)) + "\n"


def survey_of(folder: str, progress: Progress = silent, *, name: str = "", deep: Collection[str] = ()) -> Survey:
    """Every file below the folder, by its headers. name: what the folder is called, its own name without.

    deep: files that would end Python by their depth: they are not opened, and have a finding that says so. progress:
    tells with each step which file is read next, so that the page knows which of them did.
    """
    from inspector.lint.check import places_of, reading_of
    from inspector.lint.request import CheckRequest, Settings
    from inspector.survey.survey import How, plan_places, survey_plan

    request = CheckRequest(
        paths=(Path(folder),),
        base=Path(folder),
        settings=Settings(),
        git=True,
        headers=True,
        jobs=1,
        pointers_pass=False,
    )
    reading = reading_of(request)
    plan = plan_places(places_of(request), reading.limits, git=request.git)
    units = tuple(_not_opened(unit) if unit.path in deep else unit for unit in plan.units)
    read = [unit.path for unit in units if unit.row is None]

    def told(done: int, total: int | None, note: str) -> None:
        progress(done, total, read[done] if done < len(read) else "")

    told(0, len(read), "")
    return survey_plan(replace(plan, name=name or plan.name, units=units), reading, How(), progress=told)


def _not_opened(unit: Unit) -> Unit:
    from inspector.survey.kinds import NOT_EXAMINED
    from inspector.survey.row import unreadable_row

    nbytes = 0 if unit.is_folder else unit.place.stat().st_size
    return replace(unit, row=unreadable_row(unit.path, nbytes, NOT_EXAMINED, TOO_DEEP, remedy=APP_HINT))


def recognised(checkpoint: Checkpoint, state: StateDict | None, *, describe: bool = True) -> Recognition:
    """What the state dict is. Raises UnknownArchitecture where there is none."""
    from inspector.architectures.recognise import recognise

    if state is None:
        raise UnknownArchitecture(f"{checkpoint.origin.name} holds no state dict: there are no names to recognise.")
    return recognise(checkpoint, state, describe=describe)


def own_target(checkpoint: Checkpoint, state: StateDict | None) -> Target:
    """What the file was recognised as. Raises UnknownArchitecture where it was not."""
    from inspector.architectures.targets import follow_shapes, target_of_candidate

    best = recognised(checkpoint, state, describe=False).best
    if best is None:
        raise UnknownArchitecture(
            f"{checkpoint.origin.name} was not recognised, so there is nothing to compare it with.",
            hint="Name a target: torchvision/resnet18, a second file, or a list of keys.",
        )
    return follow_shapes(target_of_candidate(best), state)
