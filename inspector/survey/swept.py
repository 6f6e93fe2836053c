"""Rows of many units by a sweep: each read once, wherever, and kept by what it was when it was read."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inspector.errors import InspectorError
from inspector.progress import Progress, silent
from inspector.readers.indexed import IndexedFiles
from inspector.remote.ranged import RangedSource
from inspector.reports_from_json import KEPT, report_from
from inspector.survey.described import DESCRIBED, Describer
from inspector.survey.kinds import FILE_CHANGED, INTERNAL_ERROR, UNREADABLE_FILE, kind_of_error
from inspector.survey.members import survey_path, survey_source
from inspector.survey.report import SurveyRow
from inspector.survey.row import Reading, open_row, unreadable_row, with_findings
from inspector.survey.unit_pieces import QUESTION, UnitItem, UnitPieces, identity_of
from inspector.survey.walk import Unit
from inspector.sweep.engines import Engine
from inspector.sweep.piece import Outcome, Part, key_of
from inspector.sweep.run import sweep
from inspector.sweep.store import ResultStore

_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRows:
    """What one unit gave: its rows, and the files whose whole content is in the first of them."""

    rows: tuple[SurveyRow, ...]
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """listed_on: the machine that listed what is looked at."""

    reading: Reading
    listed_on: str

    def __call__(self, item: UnitItem) -> Outcome:
        kept = item.identity is not None
        if kept and isinstance(item.place, Path) and not os.path.lexists(item.place):
            here = socket.gethostname()
            says = f"{here} does not see it. Workers need the same paths as whoever sends them there."
            if here == self.listed_on:
                says = "It was listed, and is not there any more."
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

    def _rows(self, item: UnitItem, reading: Reading) -> tuple[tuple[SurveyRow, ...], tuple[str, ...], bool]:
        """Rows, what they cover, and whether it changed meanwhile."""
        if isinstance(item.place, Path):
            found = survey_path(item.place, item.path, reading)
            return *found, item.identity is not None and identity_of(item.place) != item.identity
        if isinstance(item.place, IndexedFiles):
            return self._rows_of_index(item.place, item.path, reading)
        try:
            source = item.place.open()
        except InspectorError as error:
            return (unreadable_row(item.path, item.place.size, kind_of_error(error), str(error)),), (), False
        try:
            rows = survey_source(source, item.path, reading)
            return rows, (), item.identity is not None and _changed(source)
        finally:
            source.close()

    def _rows_of_index(
        self, files: IndexedFiles, path: str, reading: Reading
    ) -> tuple[tuple[SurveyRow, ...], tuple[str, ...], bool]:
        folder = files.folder()
        try:
            opened = open_row(folder.open(files.name), path, reading, beside=folder)
            row, unsent = opened.row, folder.unsent()
            if unsent:
                says = f"Its server did not send all of {', '.join(unsent[:_NAMED])}: read it again."
                row = with_findings(row, (UNREADABLE_FILE.found(says),))
            return (row,), (), folder.changed()
        except InspectorError as error:
            return (unreadable_row(path, files.size, kind_of_error(error), str(error)),), (), False
        finally:
            folder.close()


def sweep_units(
    pieces: UnitPieces,
    reading: Reading,
    *,
    engine: Engine,
    places: Sequence[int] | None = None,
    store: ResultStore | None = None,
    progress: Progress = silent,
) -> Iterator[tuple[Unit, UnitRows, bool]]:
    """(unit, its rows, whether a store may keep them) of each, in the order of the units. places: of the units that are
    asked for, None for all. Raises as `sweep`."""
    wanted = range(len(pieces)) if places is None else places
    units = pieces.units
    asked = array("q", (place for place in wanted if units[place].row is None))
    outcomes = sweep(
        QUESTION,
        pieces.at(asked),
        _Look(reading=reading, listed_on=socket.gethostname()),
        lost=_lost,
        engine=engine,
        store=store,
        aside=DESCRIBED,
        progress=progress,
    )
    ready: dict[int, tuple[UnitRows, bool]] = {}
    given = 0
    for number, outcome in outcomes:
        ready[asked[number]] = rows_of(outcome.data), outcome.kept
        while given < len(wanted) and (found := _rows_at(wanted[given], units, ready)) is not None:
            yield units[wanted[given]], *found
            given += 1
    # Behind the last that was asked for.
    for place in wanted[given:]:
        if (found := _rows_at(place, units, ready)) is not None:
            yield units[place], *found


def _rows_at(
    place: int, units: Sequence[Unit], ready: dict[int, tuple[UnitRows, bool]]
) -> tuple[UnitRows, bool] | None:
    """What there is of a unit by now; what is asked about no more is let go."""
    row = units[place].row
    return ready.pop(place, None) if row is None else (UnitRows(rows=(row,)), True)


def data_of(found: UnitRows) -> bytes:
    """The rows as a line of JSON, the same wherever it is written."""
    return json.dumps(dataclasses.asdict(found), ensure_ascii=True, separators=(",", ":")).encode("ascii")


def rows_of(data: bytes) -> UnitRows:
    """What a worker wrote. Raises TypeError or ValueError for what is none."""
    return report_from(UnitRows, json.loads(data), KEPT)


def _changed(source: RangedSource) -> bool:
    try:
        return source.changed()
    except InspectorError:
        return True


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


def places_of_part(units: Iterable[Unit], part: Part) -> array[int]:
    """Where the units of one part are. A folder that is one checkpoint stays with the files in it: which of them it
    covers is known where it is read."""
    found = array("q")
    folder = ""
    for place, unit in enumerate(units):
        if unit.is_folder and not (folder and unit.path.startswith(f"{folder}/")):
            folder = unit.path
        inside = bool(folder) and (unit.path == folder or unit.path.startswith(f"{folder}/"))
        if part.holds(folder if inside else unit.path):
            found.append(place)
    return found


def _lost(item: UnitItem, why: str) -> Outcome:
    memory = why.startswith("MemoryError")
    says = "The process that read it ran out of memory." if memory else "Reading it ended the process that read it."
    row = unreadable_row(item.path, 0, INTERNAL_ERROR, f"{says} Please report this.")
    return Outcome(data=data_of(UnitRows(rows=(row,))), kept=False)
