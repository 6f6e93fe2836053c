"""A check over a store: what was read before is not read again, one run may be several drivers' parts, and the report
can be made anew, anywhere, from what the store keeps.

Of a run the store keeps its plan (every file, with the key of its result), and for each part a note: which plan it saw,
that it came to its end, and the rows that no store keeps.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inspector.errors import ReadError, UsageError
from inspector.lint.check import check_request, judge, places_of, reading_of
from inspector.lint.report import Checked
from inspector.lint.request import CheckRequest
from inspector.lint.sources import list_all
from inspector.progress import Progress, silent
from inspector.readers.listed_folder import RemoteFile
from inspector.reports_from_json import KEPT, report_from
from inspector.side_files import shown_name
from inspector.survey.kinds import NOT_EXAMINED
from inspector.survey.report import Survey, SurveyRow
from inspector.survey.row import unreadable_row
from inspector.survey.survey import How, Plan, Rows, plan_places, survey_plan
from inspector.survey.swept import UnitRows, facts_of, rows_of
from inspector.survey.unit_pieces import QUESTION, UnitPieces
from inspector.sweep.blobs import FolderBlobs, NoBlob
from inspector.sweep.piece import key_of
from inspector.sweep.store import ResultStore
from inspector.units import counted, human_bytes

_RUN_DIGITS = 12
_WRITTEN = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))
_NAMED = 3
# Of one folder. A check of what an upload holds ends earlier; a fleet is its operator's own.
_MOST_FILES = 10_000_000
# The latest time that a store knows of. Clocks of one network differ by less than so many seconds.
_CLOCK = "clock.json"
_CLOCK_SECONDS = 60
_LATER_SECONDS = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRun:
    """One run that a store knows of. id: of what was asked of which sources, in how many parts. ended: the parts that
    came to their end, from 1. of: how many there are."""

    id: str
    sources: tuple[str, ...]
    of: int
    ended: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedUnit:
    """A unit as the store keeps it. row: what is said in place of reading it."""

    path: str
    is_folder: bool = False
    key: str = ""
    row: SurveyRow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """The newest plan of a run. at: when the last of its parts ended. base: the folder that paths are relative to.
    unkept: (path, rows) that are in no store. state: is another once anything of this is."""

    id: str
    at: float
    base: str
    sources: tuple[str, ...]
    state: str
    units: tuple[PlannedUnit, ...]
    unkept: tuple[tuple[str, UnitRows], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    name: str
    skipped: tuple[str, ...] = ()
    incomplete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """plan: the name of the plan that this part saw. headers, weights_up_to: as of the request. unkept: (path, rows)
    that are in no store. base: the folder that the paths are relative to. at: when it ended, in seconds since 1970."""

    run: str
    base: str = ""
    at: float = 0.0
    headers: bool = False
    weights_up_to: int | None = None
    sources: tuple[str, ...]
    part: int
    of: int
    plan: str
    unkept: tuple[tuple[str, UnitRows], ...] = ()


def audit(
    request: CheckRequest,
    how: How,
    *,
    addresses: Sequence[str] = (),
    most_nbytes: int | None = None,
    catalogue: Path | None = None,
    each: Callable[[SurveyRow], None] | None = None,
    progress: Progress = silent,
) -> Checked:
    """As `check`, with the store of `how`; a part looks at its share alone, and its report is of that.

    addresses: more sources: prefixes of buckets (s3://, gs://, az://), places on the hub (hf://org/name, hf://org/),
    files behind http and https addresses.
    most_nbytes: that may be fetched of them without being asked, None for any. catalogue: the folder of one that is
    made of the store later. Neither that nor the store is looked at.

    Raises as `check`, UsageError over most_nbytes, ReadError and ExportError of the store and the executor; what was
    done is kept then.
    """
    check_request(request)
    reading = reading_of(request, digests=True)
    remote = list_all(addresses, reading.limits)
    if most_nbytes is not None:
        _check_cost(request, remote, most_nbytes)
    plan = plan_places(
        places_of(request),
        reading.limits,
        git=request.git,
        leave_out=_written(request, how.store, catalogue),
        most=_MOST_FILES,
        remote=remote,
    )
    facts = facts_of(reading)
    pieces = UnitPieces(plan.units, facts, kept=how.store is not None)
    unkept: list[tuple[str, UnitRows]] = []
    survey = survey_plan(
        plan,
        reading,
        how,
        pieces=pieces,
        each=each,
        unkept=lambda unit, found: unkept.append((unit.path, found)),
        progress=progress,
    )
    if how.store is not None:
        sources = (*(str(path) for path in request.paths), *addresses)
        run = key_of("audit", facts, sources, how.part.of)[:_RUN_DIGITS]
        place = how.store.put_named("plans", run, plan_lines(plan, pieces))
        note = _Note(
            run=run,
            base=os.path.abspath(request.base),
            at=_moment(how.store),
            sources=sources,
            headers=request.headers,
            weights_up_to=request.settings.weights_up_to,
            part=how.part.number,
            of=how.part.of,
            plan=place,
            unkept=tuple(unkept),
        )
        text = json.dumps(dataclasses.asdict(note), ensure_ascii=True).encode("ascii")
        how.store.blobs.write(f"runs/{run}-{how.part.number}of{how.part.of}.json", text)
    return judge(request, survey)


def runs_of(stores: Sequence[ResultStore]) -> tuple[AuditRun, ...]:
    """The runs that the stores know of, by their ids. Raises ReadError."""
    notes: dict[str, list[_Note]] = {}
    for note in _notes(stores):
        notes.setdefault(note.run, []).append(note)
    return tuple(
        AuditRun(id=run, sources=found[0].sources, of=found[0].of, ended=tuple(sorted({note.part for note in found})))
        for run, found in sorted(notes.items())
    )


def planned_runs(stores: Sequence[ResultStore], known: Container[str] = ()) -> Iterator[PlannedRun]:
    """What each run of the stores covers, one after the other; those whose state is known already are left out.

    Raises ReadError. A run whose plan is damaged is left out, as `damaged` of its store says.
    """
    notes: dict[str, list[_Note]] = {}
    for note in _notes(stores):
        notes.setdefault(note.run, []).append(note)
    for run, parts in sorted(notes.items()):
        newest = max(parts, key=lambda note: note.at)
        in_order = sorted(parts, key=lambda note: note.part)
        state = key_of("run", [_line(dataclasses.asdict(note)).decode("ascii") for note in in_order])
        plan = _plan_of(stores, newest) if state not in known else None
        if plan is not None:
            yield PlannedRun(
                id=run,
                at=newest.at,
                base=newest.base,
                sources=newest.sources,
                state=state,
                units=plan[1],
                unkept=tuple(pair for note in parts for pair in note.unkept),
            )


def merge_parts(request: CheckRequest, stores: Sequence[ResultStore], run: str = "") -> Checked:
    """The report of a whole run from what its parts left; nothing of the sources is read.

    run: which, where there are several. A file of which no part left a result is one that nobody looked at. Raises
    ReadError where there is no such run, or several and none is named.
    """
    check_request(request)
    chosen = _choose(runs_of(stores), run)
    notes = [note for note in _notes(stores) if note.run == chosen.id]
    plans = {note.plan: plan for note in notes if (plan := _plan_of(stores, note)) is not None}
    if not plans:
        raise ReadError(f"The plan of run {chosen.id} is not in the store.", hint="Run a part of it again.")
    heads, planned, differing = _union(list(plans.values()))
    results = _results(stores, {one.key for one in planned if one.key})
    unkept = {path: found for note in notes for path, found in note.unkept}
    rows = Rows()
    missing = 0
    for one in planned:
        found = results.get(one.key) or unkept.get(one.path)
        if one.row is not None:
            found = UnitRows(rows=(one.row,))
        if found is None:
            missing += 1
            found = UnitRows(rows=(unreadable_row(one.path, 0, NOT_EXAMINED, "No part of the run looked at it."),))
        rows.add(one.is_folder, found)
    skipped = [*heads[0].skipped]
    absent = [str(number) for number in range(1, chosen.of + 1) if number not in chosen.ended]
    if absent:
        more = f" and {len(absent) - 20:,} more" if len(absent) > 20 else ""
        skipped.append(f"Of {chosen.of} parts these did not come to their end: {', '.join(absent[:20])}{more}.")
    if differing:
        skipped.append(
            f"{counted(len(differing), 'file')} changed between the parts, "
            f"first {', '.join(differing[:_NAMED])}: run all of them again."
        )
    survey = Survey(
        name=heads[0].name,
        rows=tuple(rows.rows),
        skipped=tuple(skipped),
        incomplete=any(head.incomplete for head in heads) or bool(absent and missing) or bool(differing),
        seconds=0.0,
    )
    asked = replace(request.settings, weights_up_to=notes[0].weights_up_to)
    return judge(replace(request, headers=notes[0].headers, settings=asked), survey)


def _written(request: CheckRequest, store: ResultStore | None, catalogue: Path | None) -> dict[Path, str]:
    """Folders that the audit itself writes, and what is said of them. Raises UsageError where one is a source."""
    found = {} if catalogue is None else {catalogue: "the catalogue of this audit"}
    if store is not None and isinstance(store.blobs, FolderBlobs):
        found[store.blobs.root] = "the store of this audit"
    for place, what in found.items():
        if any(place.resolve() == path.resolve() for path in request.paths):
            raise UsageError(f"{shown_name(place)} is {what}.", hint="Name what is to be audited.")
    return found


def _check_cost(request: CheckRequest, remote: Sequence[RemoteFile], most_nbytes: int) -> None:
    each = request.settings.weights_up_to
    read = 0 if request.headers else sum(file.size for file in remote if each is None or file.size <= each)
    if read > most_nbytes:
        raise UsageError(
            f"Their numbers are {human_bytes(read)}, to be fetched from {counted(len(remote), 'file')}.",
            hint="--headers reads headers alone, --weights-up-to 2GB the smaller files; --yes fetches all of it.",
        )


def _choose(runs: Sequence[AuditRun], run: str) -> AuditRun:
    found = [one for one in runs if one.id.startswith(run)]
    if len(found) == 1:
        return found[0]
    if not runs:
        raise ReadError("There is no run in the store.", hint="Begin one: inspector audit SOURCE --store DIR.")
    listed = "; ".join(f"{one.id}: {' '.join(one.sources)}, {len(one.ended)} of {one.of} parts" for one in runs[:20])
    if not found:
        raise ReadError(f"There is no run {run!r} in the store.", hint=f"It holds {listed}.")
    raise ReadError(f"The store holds {len(found)} runs.", hint=f"Name one with --run. {listed}.")


def _moment(store: ResultStore) -> float:
    """Now, or later than whatever was audited into the store before: which plan is the newest decides which files there
    are, and clocks of drivers differ."""
    now = round(time.time(), 3)
    try:
        before = float(json.loads(store.blobs.read(_CLOCK))["at"])
    except (NoBlob, ValueError, TypeError, KeyError):
        before = 0.0
    if before - now > _CLOCK_SECONDS:
        store.remarks.append(
            f"Whoever audited into {store.shown} before had a clock {counted(round((before - now) / 60), 'minute')} "
            "ahead of this one: this audit is dated by that clock."
        )
    found = max(now, round(before + _LATER_SECONDS, 3))
    store.blobs.write(_CLOCK, json.dumps({"at": found}).encode("ascii"))
    return found


def _notes(stores: Iterable[ResultStore]) -> Iterator[_Note]:
    for store in stores:
        for name, data in store.blobs.read_each(store.blobs.names("runs")):
            try:
                yield report_from(_Note, json.loads(data), KEPT)
            except (ValueError, TypeError):
                store.damaged.append(name)


def plan_lines(plan: Plan, pieces: UnitPieces) -> Iterator[bytes]:
    """What a run's store keeps of its plan: a line for the whole, and one for each unit with the key under which its
    result was asked for, whatever became of the file since."""
    yield _line(dataclasses.asdict(_Head(name=plan.name, skipped=plan.skipped, incomplete=plan.incomplete)))
    for place, unit in enumerate(plan.units):
        if unit.row is not None:
            planned = dataclasses.asdict(PlannedUnit(path=unit.path, is_folder=unit.is_folder, row=unit.row))
        else:
            # What is its default is left out, of a million units.
            planned = {"path": unit.path, "key": pieces.key_at(place)}
            planned |= {"is_folder": True} if unit.is_folder else {}
        yield b"\n" + _line(planned)


def _line(told: dict[str, Any]) -> bytes:
    return _WRITTEN.encode(told).encode("ascii")


def _plan_of(stores: Iterable[ResultStore], note: _Note) -> tuple[_Head, tuple[PlannedUnit, ...]] | None:
    for store in stores:
        for place, text in store.texts("plans", note.run):
            if place == note.plan:
                head, *lines = (json.loads(line) for line in text.split(b"\n"))
                return report_from(_Head, head, KEPT), tuple(report_from(PlannedUnit, one, KEPT) for one in lines)
    return None


def _union(
    plans: Sequence[tuple[_Head, tuple[PlannedUnit, ...]]],
) -> tuple[tuple[_Head, ...], tuple[PlannedUnit, ...], tuple[str, ...]]:
    """Heads, units, and paths that are not the same in all of them."""
    heads = tuple(head for head, _ in plans)
    first = plans[0][1]
    found = {(one.path, one.is_folder): one for one in first}
    differing: set[str] = set()
    for _, units in plans[1:]:
        own = {(one.path, one.is_folder): one for one in units}
        differing.update(place[0] for place in found.keys() ^ own.keys())
        differing.update(place[0] for place in found.keys() & own.keys() if found[place].key != own[place].key)
        found = {**own, **found}
    # A folder stands before the files in it.
    ordered = sorted(found.values(), key=lambda one: (one.path.split("/"), not one.is_folder))
    return heads, (first if len(plans) == 1 else tuple(ordered)), tuple(sorted(differing))


def _results(stores: Iterable[ResultStore], wanted: set[str]) -> dict[str, UnitRows]:
    found: dict[str, UnitRows] = {}
    for store in stores:
        for key, data in store.load(QUESTION, wanted):
            found.setdefault(key, rows_of(data))
    return found
