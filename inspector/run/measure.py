"""A run measured: each member is read once, beside the first, the last and the one before it. Memory does not grow.

Members whose tensors take up to `reading.KEPT_NBYTES` are kept while others are held against them; of larger ones the
same pieces are read from the files again, so that a member takes four reads instead of one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.training_place import axis_of
from inspector.compare.updates import Update, UpdateSums
from inspector.errors import InspectorError, UsageError
from inspector.events.read import read_events
from inspector.events.report import EventLog
from inspector.health.roles import Role, roles_of
from inspector.progress import Progress, silent
from inspector.run import findings, sentences
from inspector.run.files import EventFiles, RunFile
from inspector.run.members import Candidate, Gathered, gather
from inspector.run.reading import KEPT_NBYTES, OpenMember, as_wide
from inspector.run.report import BINS, MEASURES, LeftOut, Measure, Member, RunReport, RunTensor
from inspector.run.stated import series_of
from inspector.units import counted, human_bytes
from inspector.weights import kernel
from inspector.weights.histogram import counts_between
from inspector.weights.measure import describe, measure_chunks
from inspector.weights.meter import Meter
from inspector.weights.report import TensorStatistics
from inspector.weights.rows import row_largest

#: Tensor bytes that are read at most, where nothing else is said.
BUDGET_NBYTES = 1 << 40
#: Tensors times members; each takes 13 numbers and a histogram.
MOST_CELLS = 250_000
# A histogram reaches so many standard deviations from the mean; what lies beyond is in its outermost bins.
_REACH = 5.0
# What reading a file that breaks off, or went meanwhile, raises.
_UNREAD = (InspectorError, OSError, ValueError, MemoryError)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tables:
    """What is filled in, tensor by tensor; see `RunReport`."""

    measured: NDArray[np.float64]
    spans: NDArray[np.float64]
    counts: NDArray[np.float32]


def measure_run(
    files: Sequence[RunFile],
    events: Sequence[EventFiles] = (),
    *,
    state: str = "",
    budget_nbytes: int = BUDGET_NBYTES,
    kept_nbytes: int = KEPT_NBYTES,
    progress: Progress = silent,
) -> RunReport:
    """What the checkpoints among these files hold, as one run.

    state: label or last key of the state dict that is meant in each, "" for the likeliest weights. budget_nbytes:
    tensor bytes that may be read; of more, members evenly spaced are read. kept_nbytes: see `reading.KEPT_NBYTES`.
    progress: bytes, None in all while files are opened. What is broken or belongs to something else is in `left_out`.
    Raises UsageError where none of the files is a checkpoint, and what progress raises.
    """
    began = time.perf_counter()
    found = gather(files, state, progress)
    if not found.members:
        raise _nothing(found)
    notes: list[str] = []
    members = _within(found.members, budget_nbytes, kept_nbytes, notes)
    meter = Meter(progress, sum(one.nbytes for one in members) * (1 if _all_kept(members, kept_nbytes) else 4))
    kernel.expect(sum(one.nbytes for one in members))
    reading = _Reading(members, meter, kept_nbytes)
    tensors, tables, kept, broken = reading.measure()
    read_nbytes = meter.done
    meter.end()
    members = tuple(kept)
    at, axis = axis_of([one.place for one in members])
    report = RunReport(
        says="",
        members=tuple(_member(one, place) for one, place in zip(members, at, strict=True)),
        left_out=(*found.left_out, *broken),
        ordered_by=found.ordered_by,
        axis=axis,
        tensors=tensors,
        measured=tables.measured.tobytes(),
        spans=tables.spans.tobytes(),
        counts=tables.counts.tobytes(),
        stated=series_of([one.stated for one in members]),
        logs=tuple(_logs(events, notes)),
        passed=found.passed,
        read_nbytes=read_nbytes,
    )
    report = replace(report, findings=findings.find(report), notes=tuple(notes))
    return replace(report, says=sentences.say(report), seconds=time.perf_counter() - began)


def _nothing(found: Gathered) -> UsageError:
    why = [(left.name, left.why) for left in found.left_out] + list(found.passed)
    first = f" {why[0][0]}: {why[0][1]}" if why else ""
    return UsageError(
        f"None of the {counted(len(why), 'file')} is a checkpoint.{first}" if why else "There is no file."
    )


def _all_kept(members: Sequence[Candidate], kept_nbytes: int) -> bool:
    return all(one.nbytes <= kept_nbytes for one in members)


def _within(
    members: tuple[Candidate, ...], budget_nbytes: int, kept_nbytes: int, notes: list[str]
) -> tuple[Candidate, ...]:
    """As many of them, evenly spaced, as the budget and the report have room for; the first and the last always."""
    count = len(members)
    each = max(1, max(len(one.signature) for one in members))
    most = max(2, MOST_CELLS // each)
    nbytes = sum(one.nbytes for one in members) * (1 if _all_kept(members, kept_nbytes) else 4)
    if nbytes > budget_nbytes:
        most = min(most, max(2, int(count * budget_nbytes / nbytes)))
    if count <= most:
        return members
    chosen = sorted({round(at) for at in np.linspace(0, count - 1, most)})
    why = f"reading all would take {human_bytes(nbytes)}" if nbytes > budget_nbytes else "more would fill the memory"
    notes.append(f"{len(chosen):,} of {count:,} checkpoints were read, evenly spaced: {why}.")
    return tuple(members[at] for at in chosen)


class _Reading:
    """One pass over the members."""

    def __init__(self, members: Sequence[Candidate], meter: Meter, kept_nbytes: int) -> None:
        self._members, self._meter, self._kept_nbytes = members, meter, kept_nbytes
        self._broken: dict[str, LeftOut] = {}

    def measure(self) -> tuple[tuple[RunTensor, ...], _Tables, list[Candidate], tuple[LeftOut, ...]]:
        """The tensors, what was measured of them, the members that could be read, and those that could not."""
        first = self._whole(self._members)
        if first is None:
            left = next(iter(self._broken.values()))
            raise UsageError(f"None of the checkpoints can be read. {left.name}: {left.why}")
        # The first one is whole, so that one is found.
        last = self._whole([one for one in reversed(self._members) if one is not first.one]) or first
        tensors = self._tensors(first, last)
        columns: list[_Tables] = []
        kept: list[Candidate] = []
        before: OpenMember | None = None
        try:
            for one in self._members:
                now = first if one is first.one else last if one is last.one else self._open(one)
                if now is None:
                    continue
                try:
                    columns.append(self._column(tensors, now, (before, first, last)))
                except _UNREAD as error:
                    self._leave_out(now, error)
                    continue
                kept.append(one)
                if before is not None and before is not first:
                    before.close()
                before = now
        finally:
            for each in {id(one): one for one in (first, last, before) if one is not None}.values():
                each.close()
        tables = _Tables(
            measured=np.stack([column.measured for column in columns], axis=2),
            spans=np.stack([column.spans for column in columns], axis=1),
            counts=np.stack([column.counts for column in columns], axis=1),
        )
        return tensors, tables, kept, tuple(self._broken.values())

    def _whole(self, members: Sequence[Candidate]) -> OpenMember | None:
        """The first of them that can be read: others are held against it."""
        for one in members:
            found = self._open(one)
            if found is not None:
                try:
                    found.check()
                    return found
                except _UNREAD as error:
                    self._leave_out(found, error)
        return None

    def _open(self, one: Candidate) -> OpenMember | None:
        if one.file.name in self._broken:
            return None
        try:
            return OpenMember(one, self._meter, self._kept_nbytes)
        except InspectorError as error:
            self._broken[one.file.name] = LeftOut(name=one.file.name, why=error.says, broken=True)
            return None

    def _leave_out(self, found: OpenMember, error: Exception) -> None:
        found.close()
        why = error.says if isinstance(error, InspectorError) else f"It could not be read: {error}."
        self._broken[found.one.file.name] = LeftOut(name=found.one.file.name, why=why, broken=True)

    def _tensors(self, first: OpenMember, last: OpenMember) -> tuple[RunTensor, ...]:
        """Those of the first member, then what only the last has."""
        found: dict[str, RunTensor] = {}
        for one in (first, last):
            roles = roles_of(tuple(one.tensors.values()))
            for name, tensor in one.tensors.items():
                role = roles.get(tensor.path, Role.OTHER)
                found.setdefault(
                    name,
                    RunTensor(name=name, shape=tensor.shape, dtype=tensor.dtype, numel=tensor.numel, role=role),
                )
        return tuple(found.values())

    def _column(
        self,
        tensors: Sequence[RunTensor],
        now: OpenMember,
        others: tuple[OpenMember | None, OpenMember, OpenMember],
    ) -> _Tables:
        column = _Tables(
            measured=np.full((len(tensors), len(MEASURES)), math.nan),
            spans=np.full((len(tensors), 2), math.nan),
            counts=np.zeros((len(tensors), BINS), np.float32),
        )
        for row, tensor in enumerate(tensors):
            if tensor.name not in now.tensors or now.tensors[tensor.name].shape != tensor.shape:
                continue
            self._meter.begin(f"{now.one.file.name}: {tensor.name}")
            statistics, moved = _measured(tensor.name, now, others)
            _fill(column, row, statistics, moved)
        return column


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moved:
    """What one tensor is to the same one of the member before, of the first and the last; None without one."""

    before: Update | None
    first: Update | None
    last: Update | None


def _measured(
    name: str, now: OpenMember, others: tuple[OpenMember | None, OpenMember, OpenMember]
) -> tuple[TensorStatistics, _Moved]:
    """One tensor of one member, and what it is to the others. Raises where it cannot be read."""
    tensor = now.tensors[name]
    held = [other if other is not None and other.holds(name, tensor) else None for other in others]
    decoded = now.decoded(name)
    sums = [UpdateSums(name) if other is not None else None for other in held]
    # A member is not read a second time to be held against itself.
    pieces = [other.wide(name) if other is not None and other is not now else None for other in held]

    def watched() -> Iterator[NDArray[Any]]:
        for raw in decoded.chunks:
            wide = as_wide(raw, decoded.dtype)
            for one, theirs in zip(sums, pieces, strict=True):
                if one is not None:
                    one.add(wide if theirs is None else next(theirs), wide)
            yield raw

    numbers = measure_chunks(watched(), decoded.dtype, decoded.shape, narrow=False)
    before, first, last = (one.result() if one is not None else None for one in sums)
    return describe(now.tensors[name], numbers), _Moved(before=before, first=first, last=last)


def _fill(column: _Tables, row: int, statistics: TensorStatistics, moved: _Moved) -> None:
    rows, before = statistics.rows, moved.before
    values = {
        Measure.RMS: statistics.rms,
        Measure.MEAN: statistics.mean,
        Measure.STD: statistics.std,
        Measure.MINIMUM: statistics.minimum,
        Measure.MAXIMUM: statistics.maximum,
        Measure.ZERO: statistics.zero / statistics.numel,
        Measure.ZERO_ROWS: float(np.count_nonzero(row_largest(rows) == 0)) if rows is not None else math.nan,
        Measure.NOT_FINITE: float(statistics.nan + statistics.infinite),
        Measure.MOVED: before.moved if before is not None else math.nan,
        Measure.UPDATE: before.ratio if before is not None else math.nan,
        Measure.FLIPS: before.flips / before.n if before is not None and before.n else math.nan,
        Measure.FROM_FIRST: moved.first.moved if moved.first is not None else math.nan,
        Measure.FROM_LAST: moved.last.moved if moved.last is not None else math.nan,
    }
    column.measured[row] = [values[measure] for measure in MEASURES]
    if not statistics.finite:
        return
    low = max(statistics.minimum, statistics.mean - _REACH * statistics.std)
    high = min(statistics.maximum, statistics.mean + _REACH * statistics.std)
    if not (math.isfinite(low) and math.isfinite(high)):
        return
    if low >= high:
        low, high = statistics.mean - 0.5, statistics.mean + 0.5
    column.spans[row] = low, high
    edges = np.linspace(low, high, BINS + 1)
    edges[0], edges[-1] = min(low, statistics.minimum), max(high, statistics.maximum)
    column.counts[row] = counts_between(statistics, edges)


def _member(one: Candidate, at: float) -> Member:
    return Member(
        name=one.file.name,
        nbytes=one.file_nbytes,
        place=one.place,
        at=at,
        state=one.label,
        way=one.way,
        tensors=len(one.names),
    )


def _logs(events: Sequence[EventFiles], notes: list[str]) -> Iterator[EventLog]:
    for files in events:
        try:
            yield read_events([open_() for open_ in files.open], name=files.name)
        except InspectorError as error:
            notes.append(f"{files.name} was not read: {error.says}")
