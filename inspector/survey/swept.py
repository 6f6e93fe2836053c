"""Rows of many units by a sweep: each read once, wherever, and kept by what it was when it was read."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inspector.errors import InspectorError
from inspector.gc_pause import without_collecting
from inspector.progress import Progress, silent
from inspector.remote.ranged import RangedSource
from inspector.reports_from_json import KEPT, report_from
from inspector.survey.described import DESCRIBED, Describer, Identity
from inspector.survey.kinds import FILE_CHANGED, INTERNAL_ERROR, UNREADABLE_FILE, kind_of_error
from inspector.survey.members import survey_path, survey_source
from inspector.survey.report import SurveyRow
from inspector.survey.row import Reading, unreadable_row, with_findings
from inspector.survey.walk import RemoteFile, Unit
from inspector.sweep.engines import Engine
from inspector.sweep.piece import Outcome, Part, Piece, key_of
from inspector.sweep.run import sweep
from inspector.sweep.store import ResultStore

#: What the results are called in a store.
QUESTION = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRows:
    """What one unit gave: its rows, and the files whose whole content is in the first of them."""

    rows: tuple[SurveyRow, ...]
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """identity: None where nobody asks for it, as the result is not kept; () of a remote file, which tells by itself
    whether it changed."""

    place: Path | RemoteFile
    path: str
    identity: Identity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    reading: Reading

    def __call__(self, item: _Item) -> Outcome:
        kept = item.identity is not None
        if kept and isinstance(item.place, Path) and not os.path.lexists(item.place):
            says = f"{socket.gethostname()} does not see it. Workers need the same paths as whoever sends them there."
            row = unreadable_row(item.path, 0, UNREADABLE_FILE, says)
            return Outcome(data=data_of(UnitRows(rows=(row,))), kept=False)
        describer = Describer() if kept else None
        rows, parts, changed = self._rows(item, replace(self.reading, describer=describer))
        if kept and changed:
            finding = FILE_CHANGED.found("It changed while it was read, or since it was listed: read it again.")
            rows, kept = (with_findings(rows[0], (finding,)), *rows[1:]), False
        # What a network would not give now it may give tomorrow.
        lost = not isinstance(item.place, Path) and any(
            finding.id == UNREADABLE_FILE.id for finding in rows[0].findings
        )
        found = UnitRows(rows=rows, parts=parts)
        kept = kept and not lost
        aside = describer.unit(rows, parts, item.identity) if describer is not None and kept else b""
        return Outcome(data=data_of(found), kept=kept, aside=aside)

    def _rows(self, item: _Item, reading: Reading) -> tuple[tuple[SurveyRow, ...], tuple[str, ...], bool]:
        """Rows, what they cover, and whether it changed meanwhile."""
        if isinstance(item.place, Path):
            found = survey_path(item.place, item.path, reading)
            return *found, item.identity is not None and identity_of(item.place) != item.identity
        try:
            source = item.place.open()
        except InspectorError as error:
            return (unreadable_row(item.path, item.place.size, kind_of_error(error), str(error)),), (), False
        try:
            rows = survey_source(source, item.path, reading)
            return rows, (), item.identity is not None and _changed(source)
        finally:
            source.close()


def sweep_units(
    units: Sequence[Unit],
    reading: Reading,
    *,
    engine: Engine,
    store: ResultStore | None = None,
    progress: Progress = silent,
) -> Iterator[tuple[Unit, UnitRows, bool]]:
    """(unit, its rows, whether a store may keep them) of each, in the order of the units. Raises as `sweep`."""
    pieces = pieces_of(units, facts_of(reading), kept=store is not None)
    ready: dict[int, tuple[UnitRows, bool]] = {
        place: (UnitRows(rows=(unit.row,)), True) for place, unit in enumerate(units) if unit.row is not None
    }
    asked = [place for place in range(len(units)) if place not in ready]
    outcomes = sweep(
        QUESTION,
        [pieces[place] for place in asked],
        _Look(reading=reading),
        lost=_lost,
        engine=engine,
        store=store,
        aside=DESCRIBED,
        progress=progress,
    )
    given = 0
    for number, outcome in outcomes:
        ready[asked[number]] = rows_of(outcome.data), outcome.kept
        while given in ready:
            yield units[given], *ready.pop(given)
            given += 1
    while given in ready:
        yield units[given], *ready.pop(given)
        given += 1


def data_of(found: UnitRows) -> bytes:
    """The rows as a line of JSON, the same wherever it is written."""
    return json.dumps(dataclasses.asdict(found), ensure_ascii=True, separators=(",", ":")).encode("ascii")


def rows_of(data: bytes) -> UnitRows:
    """What a worker wrote. Raises TypeError or ValueError for what is none."""
    return report_from(UnitRows, json.loads(data), KEPT)


def pieces_of(units: Iterable[Unit], facts: str, *, kept: bool = True) -> list[Piece[_Item]]:
    """A piece for each unit. facts: see `facts_of`. kept: whether a store asks for their results by a key."""
    with without_collecting():
        return [_piece(unit, facts, kept=kept) for unit in units]


def key_of_unit(unit: Unit, facts: str) -> str:
    """Of its result in a store: by its path, sizes and times, not by its content, which nobody has read yet."""
    return key_of(QUESTION, facts, unit.path, unit.is_folder, _known(unit))


def identity_of(place: Path) -> Identity:
    """What a file, or every file below a folder, is known by; nothing for what is not there."""
    if not place.is_dir():
        return tuple(_status(place, ""))
    found: list[tuple[str, int, int]] = []
    for here, below, names in os.walk(place):
        below.sort()
        for name in sorted(names):
            inside = Path(here) / name
            found += _status(inside, inside.relative_to(place).as_posix())
    return tuple(found)


def _known(unit: Unit) -> Identity:
    return identity_of(unit.place) if unit.remote is None else (("", unit.remote.size, unit.remote.tag),)


def _changed(source: RangedSource) -> bool:
    try:
        return source.changed()
    except InspectorError:
        return True


def _status(place: Path, name: str) -> Iterator[tuple[str, int, int]]:
    try:
        status = place.stat()
    except OSError:
        return
    yield name, status.st_size, status.st_mtime_ns


def facts_of(reading: Reading) -> str:
    """A digest of all that decides what is said of a file: it goes into the key of each of a million."""
    facts = {
        "limits": dataclasses.asdict(reading.limits),
        "digest": reading.digest,
        "every": reading.every,
        "pointers_pass": reading.pointers_pass,
        "more": _facts_of_callable(reading.more),
        "what": _facts_of_callable(reading.what),
    }
    return key_of("reading", facts)


def _facts_of_callable(one: Any) -> object:
    if one is None or not dataclasses.is_dataclass(one) or isinstance(one, type):
        return getattr(one, "__qualname__", None)
    return [type(one).__qualname__, dataclasses.asdict(one)]


def of_part(units: Iterable[Unit], part: Part) -> list[Unit]:
    """The units of one part. A folder that is one checkpoint stays with the files in it: which of them it covers is
    known where it is read."""
    found: list[Unit] = []
    folder = ""
    for unit in units:
        if unit.is_folder and not (folder and unit.path.startswith(f"{folder}/")):
            folder = unit.path
        inside = bool(folder) and (unit.path == folder or unit.path.startswith(f"{folder}/"))
        if part.holds(folder if inside else unit.path):
            found.append(unit)
    return found


def _piece(unit: Unit, facts: str, *, kept: bool) -> Piece[_Item]:
    if not kept or unit.row is not None:
        return Piece(item=_Item(place=unit.remote or unit.place, path=unit.path))
    if unit.remote is not None:
        # By what it is known is in the listing's entry: of a million files none is said twice.
        item = _Item(place=unit.remote, path=unit.path, identity=())
        return Piece(item=item, key=key_of_unit(unit, facts), nbytes=unit.remote.size)
    identity = identity_of(unit.place)
    return Piece(
        item=_Item(place=unit.place, path=unit.path, identity=identity),
        key=key_of(QUESTION, facts, unit.path, unit.is_folder, identity),
        nbytes=sum(nbytes for _, nbytes, _ in identity),
    )


def _lost(item: _Item, why: str) -> Outcome:
    memory = why.startswith("MemoryError")
    says = "The process that read it ran out of memory." if memory else "Reading it ended the process that read it."
    row = unreadable_row(item.path, 0, INTERNAL_ERROR, f"{says} Please report this.")
    return Outcome(data=data_of(UnitRows(rows=(row,))), kept=False)
