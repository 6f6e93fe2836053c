"""What the command line prints with --json, byte for byte, for a page that has no command line."""

from __future__ import annotations

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


def scan_json(folder: str, progress: Progress = silent) -> str:
    """As `inspector scan FOLDER --json`."""
    from inspector.survey.survey import require_folder

    require_folder(folder)
    return as_json(survey_of(folder, progress)) + "\n"


def survey_of(folder: str, progress: Progress = silent) -> Survey:
    """Every file below the folder, by its headers."""
    from inspector.lint.check import check
    from inspector.lint.request import CheckRequest, Settings

    request = CheckRequest(
        paths=(Path(folder),),
        base=Path(folder),
        settings=Settings(),
        git=True,
        headers=True,
        jobs=1,
        pointers_pass=False,
    )
    return check(request, progress=progress).survey


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
