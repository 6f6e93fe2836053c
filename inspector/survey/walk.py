"""Which files and folders of a tree are opened, and what is said of those that cannot be: a gate must not be passed by
what nobody could look at."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from inspector.errors import InspectorError, ReadError
from inspector.findings import Severity
from inspector.limits import Limits
from inspector.path_text import path_text
from inspector.readers import claims_folder
from inspector.readers.listed_folder import RemoteFile
from inspector.survey.kinds import FOLDER_UNLISTED, NOT_EXAMINED, UNREADABLE_FILE, kind_of_error
from inspector.survey.report import SurveyRow
from inspector.survey.row import crashed_row, unreadable_row
from inspector.units import counted

_MOST_LEVELS = 64
_NOTHING: Mapping[Path, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One path to open.

    path: as its row calls it. where: where it is here. is_folder: several files that are one checkpoint. row: what is
    said instead, where it cannot be opened. remote: what is opened in place of `where`.
    """

    path: str
    where: str = ""
    is_folder: bool = False
    row: SurveyRow | None = None
    remote: RemoteFile | None = None

    @property
    def place(self) -> Path:
        """Where it is here. Made when it is asked for: a Path takes four times the memory of its text."""
        return Path(self.where)


class Units(Sequence[Unit]):
    """Units of what is here, and behind them one for each remote file, made when it is asked for: of a million the
    listing is enough to hold."""

    def __init__(self, here: Sequence[Unit], remote: Sequence[RemoteFile] = ()) -> None:
        self._here, self._remote = here, remote

    def __len__(self) -> int:
        return len(self._here) + len(self._remote)

    @overload
    def __getitem__(self, place: int) -> Unit: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Unit, ...]: ...

    def __getitem__(self, place: int | slice) -> Unit | tuple[Unit, ...]:
        if isinstance(place, slice):
            return tuple(self[one] for one in range(len(self))[place])
        place = range(len(self))[place]
        if place < len(self._here):
            return self._here[place]
        file = self._remote[place - len(self._here)]
        return Unit(path=file.address, remote=file)


class Walk:
    """Everything below root, a folder that is one checkpoint before the files in it.

    shown: what the root is called in front of the paths, "" for paths that are relative to it. git: look also at what
    git keeps for itself (`.git` with its HEAD), which nobody can commit anything into. links: open what links to files
    elsewhere lead to; else each has a row that says so. leave_out: folders that are passed over, and what is said of
    them, by their resolved paths. most: files that are looked at, else as many as of an archive.
    units: in order. incomplete: files may lie where nobody looked. Raises ReadError when root cannot be listed.
    """

    def __init__(
        self,
        root: Path,
        limits: Limits,
        shown: str = "",
        *,
        git: bool = True,
        links: bool = True,
        leave_out: Mapping[Path, str] = _NOTHING,
        most: int | None = None,
    ) -> None:
        self.root = root
        most = limits.members if most is None else most
        self._git = git
        self._follows = links
        self._aside = leave_out
        self.shown = shown
        self.limits = limits
        self.units: list[Unit] = []
        self.incomplete = False
        self._left_out: list[str] = []
        self._passed: list[str] = []
        self._links = 0
        self._real = root.resolve()
        for here, below, names in os.walk(root, followlinks=False, onerror=self._unlisted):
            self._folder(Path(here), below, names)
            if len(self.units) > most:
                self._leave_out(f"Everything after the first {most:,} files.")
                break

    def skipped(self) -> tuple[str, ...]:
        """What was not looked at, and why."""
        notes = [*self._left_out, *self._passed]
        if self._links:
            notes.append(f"{counted(self._links, 'symbolic link')} to what has a row of its own.")
        return tuple(notes)

    def _folder(self, place: Path, below: list[str], names: list[str]) -> None:
        inside = place.relative_to(self.root)
        # os.walk lists links to folders among the folders.
        if not self._git and ".git" in below and (place / ".git" / "HEAD").is_file():
            below.remove(".git")
            self._passed.append(f"{self._path(inside / '.git')}: what git keeps for itself.")
        for name in sorted(below) if self._aside else ():
            if (what := self._aside.get(self._real / inside / name)) is not None:
                below.remove(name)
                self._passed.append(f"{self._path(inside / name)}: {what}.")
        linked = sorted(name for name in below if (place / name).is_symlink())
        below[:] = sorted(
            name for name in below if name not in linked and self._mode(place / name, inside / name, stat.S_ISDIR)
        )
        if len(inside.parts) >= _MOST_LEVELS and below:
            self._leave_out(f"Folders more than {_MOST_LEVELS} levels deep, first {self._path(inside)}.")
            below[:] = []
        self._claim(place, inside)
        # By texts, not by Paths: of a million files those are two thirds of the time.
        here, above = str(place), "" if inside == Path() else f"{inside.as_posix()}/"
        for name in sorted([*names, *linked]):
            where = os.path.join(here, name)  # noqa: PTH118
            if _is_plain(where) or self._mode(place / name, inside / name, stat.S_ISREG):
                self.units.append(Unit(path=self._path_of(f"{above}{name}"), where=where))

    def _path(self, inside: Path) -> str:
        """What a path is called in the rows."""
        return self.shown if self.shown and inside == Path() else self._path_of(inside.as_posix())

    def _path_of(self, inside: str) -> str:
        return f"{self.shown.rstrip('/')}/{path_text(inside)}" if self.shown else path_text(inside)

    def _leave_out(self, what: str) -> None:
        self.incomplete = True
        self._left_out.append(what)

    def _refuse(self, inside: Path, row: SurveyRow) -> None:
        self.units.append(Unit(path=row.path, where=str(self.root / inside), row=row))

    def _unlisted(self, error: OSError) -> None:
        place = Path(error.filename or self.root)
        why = error.strerror or str(error)
        if place == self.root:
            raise ReadError(f"{self.root.name or self.root} cannot be listed: {why}.") from error
        inside = place.relative_to(self.root)
        says = f"The folder cannot be listed: {why}. Nothing in it was looked at."
        self._refuse(inside, unreadable_row(self._path(inside), 0, FOLDER_UNLISTED, says))

    def _claim(self, place: Path, inside: Path) -> None:
        """A row for the folder as a whole, or for what kept it from being one."""
        try:
            if claims_folder(place, limits=self.limits):
                self.units.append(Unit(path=self._path(inside), where=str(place), is_folder=True))
        except InspectorError as error:
            self._refuse(inside, unreadable_row(self._path(inside), 0, kind_of_error(error), str(error)))
        except Exception as error:  # noqa: BLE001 - a gate must not be passed because a folder crashed its guard
            self._refuse(inside, crashed_row(self._path(inside), 0, error))

    def _mode(self, place: Path, inside: Path, wanted: Callable[[int], bool]) -> bool:
        """Whether it is of the kind that is walked or opened; what is neither has a row that says so."""
        try:
            mode = place.lstat().st_mode
        except OSError as error:
            says = f"{path_text(place.name)} cannot be looked at: {error.strerror or error}."
            self._refuse(inside, unreadable_row(self._path(inside), 0, UNREADABLE_FILE, says))
            return False
        if stat.S_ISLNK(mode):
            return wanted is stat.S_ISREG and self._linked_file(place, inside)
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            self._pass_over(inside, "It is a device, a socket or a pipe, and was not looked at.")
        return wanted(mode)

    def _linked_file(self, place: Path, inside: Path) -> bool:
        """Whether a link leads to a file that lies elsewhere: download caches and shared disks are made of such links.

        A linked folder is not walked: it may lead in circles, or to the whole disk.
        """
        try:
            target = place.resolve(strict=True)
            mode = target.stat().st_mode
        except (OSError, RuntimeError):
            self._pass_over(inside, "It is a symbolic link to nothing.", Severity.INFO)
            return False
        if target.is_relative_to(self._real):
            self._links += 1
            return False
        if not self._follows:
            self._pass_over(inside, "It is a symbolic link out of the folder, and what is there was not looked at.")
            return False
        if stat.S_ISREG(mode):
            return True
        what = "a folder elsewhere" if stat.S_ISDIR(mode) else "a device, a socket or a pipe"
        self._pass_over(inside, f"It is a symbolic link to {what}, and what is there was not looked at.")
        return False

    def _pass_over(self, inside: Path, says: str, severity: Severity = Severity.WARNING) -> None:
        self._refuse(inside, unreadable_row(self._path(inside), 0, NOT_EXAMINED, says, severity))


def _is_plain(where: str) -> bool:
    """Whether it is a file and no link; whatever else it is, or not, is looked at more closely."""
    try:
        return stat.S_ISREG(os.lstat(where).st_mode)
    except OSError:
        return False
