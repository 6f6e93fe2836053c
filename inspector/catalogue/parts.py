"""The files of a catalogue: parts that are written once, whole or not at all, each with a note that says what is in it.

A part is known by what it was made from, so that two who make the same write the same names, and its note comes last.
Nothing is ever changed in place: a part that holds what others hold takes their place, and they are removed later.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from inspector.catalogue.schema import VERSION
from inspector.errors import ExportError, ReadError
from inspector.new_files import new_file
from inspector.reports_from_json import KEPT, report_from
from inspector.side_files import reason_of, shown_name
from inspector.sweep.blobs import is_full, still_whole
from inspector.sweep.store import check_version

_FOLDER = "catalogue"
#: What the folder of lines on their way into a part is called first.
SCRATCH = ".lines-"
_ID_DIGITS = 24
_MOST_NOTE_NBYTES = 256 << 20
# Who reads a part that another has taken the place of, or writes one whose note is still to come, is done by then.
_LEFT_SECONDS = 6 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFile:
    """One file of Parquet. name: in the catalogue's folder. sha256: of its bytes."""

    table: str
    name: str
    nbytes: int
    sha256: str
    rows: int


class PartKind(StrEnum):
    """ROWS: of files, tensors and findings. RUN: the plan of a run. INDEX: what follows from all of them together."""

    ROWS = "rows"
    RUN = "run"
    INDEX = "index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a note says. covers: names of what its rows were made from; of an index, ids of the parts that it is of.

    run, at: of a run's plan, which run and when it ended. absent: of an index, how many files the runs list that have
    no result. plain: of an index, whether every row of every part counts, once. version: of the tables.
    """

    id: str
    kind: PartKind
    covers: tuple[str, ...]
    files: tuple[PartFile, ...]
    run: str = ""
    at: float = 0.0
    absent: int = 0
    plain: bool = False
    version: int = VERSION

    def file(self, table: str) -> PartFile:
        """Its file of that table."""
        return next(one for one in self.files if one.table == table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """rows: parts of files, tensors and findings, none of which another one covers. runs: the newest plan of each run.
    index: of exactly these, None where there is none yet.
    damaged: names of files that are not what they were written as, with all parts that they are of left out.
    older: how many parts are of an earlier version of the tables, left out as well."""

    rows: tuple[Part, ...] = ()
    runs: tuple[Part, ...] = ()
    index: Part | None = None
    damaged: tuple[str, ...] = ()
    older: int = 0

    @property
    def ids(self) -> tuple[str, ...]:
        """What an index of them covers."""
        return tuple(sorted(part.id for part in (*self.rows, *self.runs)))

    @property
    def covered(self) -> frozenset[str]:
        """What their rows were made from."""
        return frozenset(name for part in self.rows for name in part.covers)


def catalogue_of(store: str | os.PathLike[str]) -> PartFolder:
    """The catalogue in the folder of a store. Raises UsageError where that is a store of another version."""
    check_version(os.fspath(store))
    return PartFolder(Path(store) / _FOLDER)


class PartFolder:
    """The folder of one catalogue."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.shown = shown_name(root)

    def place(self, file: PartFile) -> Path:
        """Where it is."""
        return self.root / file.name

    def parts(self, *, whole: bool = False) -> Parts:
        """What is there. whole: every byte is looked at, not lengths alone. Raises ReadError for a folder that cannot
        be listed, and one that a later version of this package wrote."""
        found: list[Part] = []
        damaged: list[str] = []
        older = 0
        for name in self._names():
            if not name.endswith(".json"):
                continue
            part = self._note(name)
            if part is None:
                damaged.append(name)
            elif part.version > VERSION:
                raise ReadError(
                    f"The catalogue {self.shown} was written by a later version of Model Inspector.",
                    hint="Use that version, or name another store.",
                )
            elif part.version < VERSION:
                older += 1
            else:
                bad = [file.name for file in part.files if not self._is_whole(file, whole)]
                damaged += bad
                found += [] if bad else [part]
        newest: dict[str, Part] = {}
        for part in sorted(found, key=lambda part: (part.at, part.id)):
            if part.kind is PartKind.RUN:
                newest[part.run] = part
        parts = Parts(
            rows=tuple(_uncovered([part for part in found if part.kind is PartKind.ROWS])),
            runs=tuple(newest.values()),
            damaged=tuple(sorted(damaged)),
            older=older,
        )
        indices = (part for part in found if part.kind is PartKind.INDEX and part.covers == parts.ids)
        return replace(parts, index=next(indices, None))

    def write(
        self,
        kind: PartKind,
        tables: Sequence[str],
        covers: Iterable[str],
        fill: Callable[[str, Path], int],
        *,
        run: str = "",
        at: float = 0.0,
        absent: int = 0,
        plain: bool = False,
    ) -> Part:
        """A new part. fill: writes the Parquet of a table to a path and says how many rows it has. Raises ExportError;
        what was there stays whole."""
        covered = tuple(sorted(set(covers)))
        told = json.dumps([VERSION, kind.value, run, at, covered], ensure_ascii=True).encode("ascii")
        own = hashlib.sha256(told).hexdigest()[:_ID_DIGITS]
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            files: list[PartFile] = []
            for table in tables:
                name = f"{table}-{own}.parquet"
                with new_file(self.root / name) as temporary:
                    count = fill(table, temporary)
                    digest, nbytes = _digest_of(temporary), temporary.stat().st_size
                files.append(PartFile(table=table, name=name, nbytes=nbytes, sha256=digest, rows=count))
            part = Part(
                id=own, kind=kind, covers=covered, files=tuple(files), run=run, at=at, absent=absent, plain=plain
            )
            with new_file(self.root / f"{own}.json") as temporary:
                temporary.write_text(json.dumps(dataclasses.asdict(part), ensure_ascii=True), encoding="ascii")
        except OSError as error:
            raise ExportError(
                f"The catalogue {self.shown} cannot be written: {reason_of(error)}.",
                hint=still_whole(full=is_full(error)),
            ) from error
        return part

    def sweep_up(self, kept: Parts, *, seconds: float = _LEFT_SECONDS) -> None:
        """Remove what belongs to no part that counts, once nobody reads it any more."""
        parts = (*kept.rows, *kept.runs, *((kept.index,) if kept.index is not None else ()))
        own = {f"{part.id}.json" for part in parts} | {file.name for part in parts for file in part.files}
        for name in self._names():
            place = self.root / name
            # Without rights, or removed by another driver: it does no harm.
            with contextlib.suppress(OSError):
                if name in own or time.time() - place.stat().st_mtime <= seconds:
                    continue
                if place.is_file():
                    place.unlink()
                elif name.startswith(SCRATCH):
                    shutil.rmtree(place)

    def _names(self) -> list[str]:
        try:
            return sorted(place.name for place in self.root.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ReadError(f"The catalogue {self.shown} cannot be listed: {reason_of(error)}.") from error

    def _note(self, name: str) -> Part | None:
        place = self.root / name
        try:
            if place.stat().st_size > _MOST_NOTE_NBYTES:
                return None
            told = json.loads(place.read_bytes())
            if isinstance(told, dict) and told.get("version") != VERSION and isinstance(told.get("version"), int):
                # Of another version nothing else is known.
                return Part(id=name, kind=PartKind.ROWS, covers=(), files=(), version=told["version"])
            part = report_from(Part, told, KEPT)
        except (OSError, ValueError, TypeError, RecursionError):
            return None
        # The names are ours and lead nowhere else.
        named = all(file.name == f"{file.table}-{part.id}.parquet" for file in part.files)
        return part if named and name == f"{part.id}.json" else None

    def _is_whole(self, file: PartFile, whole: bool) -> bool:
        place = self.place(file)
        try:
            return place.stat().st_size == file.nbytes and (not whole or _digest_of(place) == file.sha256)
        except OSError:
            return False


def _uncovered(parts: Sequence[Part]) -> list[Part]:
    """Without those that another one holds all of; of two that hold the same, the first by name stays."""
    found: list[Part] = []
    held: list[frozenset[str]] = []
    for part in sorted(parts, key=lambda part: (-len(part.covers), part.id)):
        covers = frozenset(part.covers)
        if not any(covers <= other for other in held):
            found.append(part)
            held.append(covers)
    return found


def _digest_of(place: Path) -> str:
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
