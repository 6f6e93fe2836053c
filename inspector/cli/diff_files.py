"""Which files of a command are held against which: each against the first, or those of two folders by their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.cli.options import open_file
from inspector.compare.diff import Pairwise, compare_checkpoints
from inspector.compare.report import Diff
from inspector.errors import InspectorError, UnknownFormat, UsageError
from inspector.giants.measure import check_cost
from inspector.limits import DEFAULT_LIMITS
from inspector.progress import Progress
from inspector.readers import claims_folder
from inspector.render.visible import one_line
from inspector.side_files import PathKind, kind_of_path, shown_name
from inspector.survey.walk import Walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparing:
    """How two files are compared. first, second: which state dict of either.
    relatives: whether it is asked what they have to do with each other. everything: whether other state dicts' tensors
    are compared. pairwise: who holds pairs of tensors against each other; None: threads of this process. most_nbytes:
    that may be fetched of them without being asked, None for any."""

    first: Callable[[Checkpoint], StateDict | None]
    second: Callable[[Checkpoint], StateDict | None]
    workers: int
    relatives: bool = True
    everything: bool = False
    pairwise: Pairwise | None = None
    most_nbytes: int | None = None
    progress: Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One comparison. name: of the second file. diff: None where there is none: says why; trouble: it is an error and
    no difference. folders: it is one of the files of two folders."""

    name: str
    diff: Diff | None = None
    says: str = ""
    trouble: bool = False
    folders: bool = False


def compare_paths(paths: Sequence[str], comparing: Comparing) -> list[Compared]:
    """Each against the first; of two folders of files each file against that of the same name.

    Raises UsageError for a folder of several files beside a file, InspectorError where the first file, or one of two,
    cannot be read.
    """
    plain = [path for path in paths if _is_plain_folder(path)]
    if plain and (len(paths) != 2 or len(plain) != 2):
        raise UsageError(
            f"{shown_name(plain[0])} is a folder of several files, and no one checkpoint.",
            hint="Name a file in it, or two folders: their files are then compared by name.",
        )
    if plain:
        return _folders(Path(paths[0]), Path(paths[1]), comparing)
    first = open_file(paths[0])
    state = comparing.first(first)
    if len(paths) == 2:
        return [_compare(first, state, open_file(paths[1]), paths[1], comparing)]
    found = []
    for path in paths[1:]:
        try:
            found.append(_compare(first, state, open_file(path), path, comparing))
        except InspectorError as error:
            found.append(Compared(name=path, says=str(error), trouble=True))
    return found


def _compare(a: Checkpoint, state: StateDict | None, b: Checkpoint, name: str, comparing: Comparing) -> Compared:
    if comparing.most_nbytes is not None:
        for one in (a, b):
            check_cost(one, comparing.most_nbytes)
    return Compared(
        name=name,
        diff=compare_checkpoints(
            a,
            b,
            a_state=state,
            b_state=comparing.second(b),
            relatives=comparing.relatives,
            everything=comparing.everything,
            workers=comparing.workers,
            pairwise=comparing.pairwise,
            progress=comparing.progress,
        ),
    )


def _is_plain_folder(path: str) -> bool:
    if "://" in path or kind_of_path(path) is not PathKind.FOLDER:
        return False
    return not claims_folder(path)


def _folders(one: Path, two: Path, comparing: Comparing) -> list[Compared]:
    """By the path in the folder; files that are no checkpoint in either are passed over."""
    places = [_places(folder) for folder in (one, two)]
    names = sorted({*places[0], *places[1]})
    found = []
    for name in names:
        sides = [place.get(name) for place in places]
        opened: list[Checkpoint | None] = []
        wrong = ""
        for side in sides:
            try:
                opened.append(open_file(str(side)) if side is not None else None)
            except UnknownFormat:
                opened.append(None)
            except InspectorError as error:
                opened.append(None)
                wrong = wrong or str(error)
        a, b = opened
        shown = one_line(name)
        if wrong:
            found.append(Compared(name=name, says=f"{shown}: {wrong}", trouble=True))
        elif a is not None and b is not None:
            try:
                found.append(_compare(a, comparing.first(a), b, name, comparing))
            except InspectorError as error:
                found.append(Compared(name=name, says=f"{shown}: {error}", trouble=True))
        elif a is not None or b is not None:
            folder = "first" if a is not None else "second"
            found.append(Compared(name=name, says=f"{shown}: a checkpoint in the {folder} folder alone."))
    found = [replace(each, folders=True) for each in found]
    if not found:
        raise UsageError("Neither folder has a checkpoint in it.", hint="Name files, or folders of files.")
    return found


def _places(folder: Path) -> dict[str, Path]:
    """Path in the folder -> place; a folder that is one checkpoint stands for what is in it."""
    units = Walk(folder, DEFAULT_LIMITS).units
    whole = [f"{unit.path}/" for unit in units if unit.is_folder]
    return {
        unit.path: unit.place
        for unit in units
        if unit.is_folder or (unit.row is None and not unit.path.startswith(tuple(whole)))
    }
