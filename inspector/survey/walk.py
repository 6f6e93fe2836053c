"""Which files and folders of a tree are opened, and what is said of those that cannot be: a gate must not be passed by
what nobody could look at."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from inspector.errors import InspectorError, ReadError
from inspector.limits import Limits
from inspector.readers import claims_folder
from inspector.survey.report import SurveyRow
from inspector.survey.row import crashed_row, unreadable_row
from inspector.units import counted

_MOST_LEVELS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One path to open, relative to the root. is_folder: several files that are one checkpoint.

    row: what is said instead, where it cannot be opened.
    """

    path: str
    is_folder: bool = False
    row: SurveyRow | None = None


class Walk:
    """Everything below root, a folder that is one checkpoint before the files in it.

    units: in order. incomplete: files may lie where nobody looked. Raises ReadError when root cannot be listed.
    """

    def __init__(self, root: Path, limits: Limits) -> None:
        self.root = root
        self.limits = limits
        self.units: list[Unit] = []
        self.incomplete = False
        self._left_out: list[str] = []
        self._links = 0
        self._special = 0
        for here, below, names in os.walk(root, followlinks=False, onerror=self._unlisted):
            self._folder(Path(here), below, names)
            if len(self.units) > limits.members:
                self._leave_out(f"Everything after the first {limits.members:,} files.")
                break

    def skipped(self) -> tuple[str, ...]:
        """What was not looked at, and why."""
        notes = list(self._left_out)
        if self._links:
            notes.append(f"{self._links:,} symbolic links, which point elsewhere.")
        if self._special:
            notes.append(f"{counted(self._special, 'device, socket or pipe', 'devices, sockets or pipes')}.")
        return tuple(notes)

    def nothing_but_links(self) -> bool:
        """As in a folder of a download cache: all that somebody would load from here lies elsewhere."""
        return self._links > 0 and not self.units

    def _folder(self, place: Path, below: list[str], names: list[str]) -> None:
        inside = place.relative_to(self.root)
        # os.walk lists links to folders among the folders.
        below[:] = sorted(name for name in below if self._mode(place / name, inside / name, stat.S_ISDIR))
        if len(inside.parts) >= _MOST_LEVELS and below:
            self._leave_out(f"Folders more than {_MOST_LEVELS} levels deep, first {inside}.")
            below[:] = []
        self._claim(place, inside)
        for name in sorted(names):
            if self._mode(place / name, inside / name, stat.S_ISREG):
                self.units.append(Unit(path=(inside / name).as_posix()))

    def _leave_out(self, what: str) -> None:
        self.incomplete = True
        self._left_out.append(what)

    def _refuse(self, inside: Path, row: SurveyRow) -> None:
        self.units.append(Unit(path=inside.as_posix(), row=row))

    def _unlisted(self, error: OSError) -> None:
        place = Path(error.filename or self.root)
        why = error.strerror or str(error)
        if place == self.root:
            raise ReadError(f"{self.root.name or self.root} cannot be listed: {why}.") from error
        inside = place.relative_to(self.root)
        says = f"The folder cannot be listed: {why}. Nothing in it was looked at."
        self._refuse(inside, unreadable_row(inside.as_posix(), 0, "folder-unlisted", says))

    def _claim(self, place: Path, inside: Path) -> None:
        """A row for the folder as a whole, or for what kept it from being one."""
        try:
            if claims_folder(place, limits=self.limits):
                self.units.append(Unit(path=inside.as_posix(), is_folder=True))
        except InspectorError as error:
            self._refuse(inside, unreadable_row(inside.as_posix(), 0, type(error).__name__, str(error)))
        except Exception as error:  # noqa: BLE001 - a gate must not be passed because a folder crashed its guard
            self._refuse(inside, crashed_row(inside.as_posix(), 0, error))

    def _mode(self, place: Path, inside: Path, wanted: Callable[[int], bool]) -> bool:
        """Whether it is of the kind that is walked or opened; links and devices are counted instead."""
        try:
            mode = place.lstat().st_mode
        except OSError as error:
            says = f"{place.name} cannot be looked at: {error.strerror or error}."
            self._refuse(inside, unreadable_row(inside.as_posix(), 0, "ReadError", says))
            return False
        self._links += stat.S_ISLNK(mode)
        self._special += not (stat.S_ISLNK(mode) or stat.S_ISREG(mode) or stat.S_ISDIR(mode))
        return wanted(mode)
