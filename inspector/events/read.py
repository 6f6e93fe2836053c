"""Reads the event files of a run into one log. Nothing in them is trusted: lengths, checksums, counts and memory are
held against limits, and what could not be read is said."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from inspector.checkpoint.source import ByteSource, PathSource
from inspector.errors import UnknownFormat, UsageError
from inspector.events.collect import Collector
from inspector.events.messages import Event, read_event
from inspector.events.records import MOST_RECORD_NBYTES, Records
from inspector.events.report import CurvePoint, EventFile, EventLog, HistogramPoint, ImagePoint, TextPoint
from inspector.findings import Finding, FindingKind, Severity
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.progress import Progress, silent
from inspector.readers.formats.onnx.protobuf import BadWire
from inspector.units import counted, human_bytes

EVENTS_CUT = FindingKind("events-cut", Severity.NOTICE, "An event file ends inside a record")
EVENTS_DAMAGED = FindingKind(
    "events-damaged", Severity.WARNING, "Records of an event file do not agree with their checksum"
)
EVENTS_LOST = FindingKind("events-lost", Severity.WARNING, "The rest of an event file cannot be found")
EVENTS_UNREAD = FindingKind("events-unread", Severity.NOTICE, "Values of event files were left out")
EVENTS_REPLACED = FindingKind("events-replaced", Severity.INFO, "Steps were logged more than once")

_BETWEEN_PROGRESS = 256
_MOST_RESTARTS = 100
_MOST_FILES = 10_000


@dataclass(slots=True)
class _Seen:
    """What is gathered over all files beside the series."""

    collector: Collector
    files: list[EventFile] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    restarts: list[int] = field(default_factory=list)
    steps: tuple[int, int] | None = None
    times: tuple[float, float] | None = None
    no_events: int = 0
    first_no_event: str = ""
    strangers: list[str] = field(default_factory=list)

    def note(self, event: Event) -> None:
        if event.summary is not None:
            low, high = self.steps or (event.step, event.step)
            self.steps = min(low, event.step), max(high, event.step)
        if math.isfinite(event.wall_time):
            early, late = self.times or (event.wall_time, event.wall_time)
            self.times = min(early, event.wall_time), max(late, event.wall_time)
        if event.started and len(self.restarts) < _MOST_RESTARTS:
            self.restarts.append(event.step)


def read_events(
    files: str | os.PathLike[str] | ByteSource | Sequence[str | os.PathLike[str] | ByteSource],
    *,
    name: str = "",
    limits: Limits = DEFAULT_LIMITS,
    most_record_nbytes: int = MOST_RECORD_NBYTES,
    progress: Progress = silent,
) -> EventLog:
    """What the event files of one run hold together, in the order given; TensorBoard's is by name.

    name: of the run. progress counts bytes. Raises UnknownFormat where none of them is an event file, ReadError
    for what cannot be opened, UsageError without files.
    """
    given = [files] if isinstance(files, str | os.PathLike | ByteSource) else list(files)
    if not given or len(given) > _MOST_FILES:
        raise UsageError(f"A run has 1 to {_MOST_FILES:,} event files, not {len(given):,}.")
    seen = _Seen(Collector(limits.metered()))
    with ExitStack() as opened:
        for number, one in enumerate(given):
            if isinstance(one, str | os.PathLike):
                source: ByteSource = PathSource(one)
                opened.callback(source.close)
            else:
                source = one
            _read_file(source, number, seen, most_record_nbytes, progress)
            opened.close()
    if len(seen.strangers) == len(given):
        raise UnknownFormat(
            f"{seen.strangers[0]} is no TensorBoard event file: its first record has no length that agrees with its "
            "checksum.",
            hint="Event files are called events.out.tfevents. and more, and are not packed.",
        )
    return _log(seen, name or seen.files[0].name)


def _read_file(source: ByteSource, number: int, seen: _Seen, most_nbytes: int, progress: Progress) -> None:
    records = Records(source, most_nbytes=most_nbytes)
    version = writer = ""
    graph_nbytes = 0
    for event, data, offset in _events(records, source, seen, progress):
        version = version or event.version
        writer = writer or event.writer
        graph_nbytes = max(graph_nbytes, event.graph_nbytes)
        seen.note(event)
        try:
            seen.collector.add(event, data, number, offset)
        except BadWire as error:
            _no_event(seen, source.name, offset, error)
    if records.lost == 0:
        seen.strangers.append(source.name)
    progress(source.size, source.size, source.name)
    seen.files.append(
        EventFile(
            name=source.name,
            nbytes=source.size,
            read_nbytes=records.end,
            records=records.good,
            damaged=records.n_damaged,
            version=version,
            writer=writer,
            graph_nbytes=graph_nbytes,
        )
    )
    seen.findings += _of_records(records, source)


def _events(
    records: Records, source: ByteSource, seen: _Seen, progress: Progress
) -> Iterator[tuple[Event, bytes, int]]:
    for count, (offset, data) in enumerate(records):
        if count % _BETWEEN_PROGRESS == 0:
            progress(offset, source.size, source.name)
        try:
            yield read_event(data), data, offset
        except BadWire as error:
            _no_event(seen, source.name, offset, error)


def _no_event(seen: _Seen, name: str, offset: int, error: BadWire) -> None:
    seen.no_events += 1
    seen.first_no_event = seen.first_no_event or f"the one at byte {offset:,} of {name}: {error}"


def _of_records(records: Records, source: ByteSource) -> Iterator[Finding]:
    name = source.name
    if not source.size:
        yield EVENTS_CUT.found(f"{name} is empty.", subjects=(name,))
    elif records.cut is not None:
        at, needed = records.cut
        yield EVENTS_CUT.found(
            f"The last record of {name}, at byte {at:,}, takes {needed:,} bytes, and {source.size - at:,} are there; "
            f"the {counted(records.good, 'record')} before it were read.",
            subjects=(name,),
            evidence=(("at", at), ("needed", needed), ("there", source.size - at)),
            remedy="A training that is still running writes so: read it again later. Otherwise copy the file again.",
        )
    if records.n_damaged:
        yield EVENTS_DAMAGED.found(
            f"{counted(records.n_damaged, 'record')} of {name} {_be(records.n_damaged, 'does', 'do')} not agree "
            f"with the checksum beside the data and went unread, the first at byte {records.first_damaged or 0:,}. "
            "TensorBoard shows what they hold now, or stops there, by how it was started.",
            subjects=(name,),
            evidence=(("records", records.n_damaged), ("at", records.first_damaged or 0)),
            remedy="Copy the file again from where it was written.",
        )
    if records.lost is not None:
        left = source.size - records.lost
        yield EVENTS_LOST.found(
            f"The length of a record of {name}, at byte {records.lost:,}, does not agree with its checksum, so the "
            f"{human_bytes(left)} from there on went unread.",
            subjects=(name,),
            evidence=(("at", records.lost), ("nbytes", left)),
            remedy="Copy the file again from where it was written.",
        )
    if records.n_large:
        yield EVENTS_UNREAD.found(
            f"{counted(records.n_large, 'record')} of {name} {_be(records.n_large)} larger than the "
            f"{human_bytes(records.most)} that are read at once, the first at byte {records.first_large or 0:,}.",
            subjects=(name,),
            evidence=(("records", records.n_large), ("at", records.first_large or 0)),
        )


def _of_values(seen: _Seen) -> Iterator[Finding]:
    collector = seen.collector
    points, series = collector.replaced()
    if points:
        yield EVENTS_REPLACED.found(
            f"{counted(points, 'point')} of {series:,} series {_be(points, 'was', 'were')} logged again later, at the "
            f"same or an earlier step, first at step {collector.replaced_from:,}. The later ones stand, as "
            "TensorBoard shows them.",
            evidence=(("points", points), ("series", series), ("step", collector.replaced_from or 0)),
        )
    if seen.no_events:
        yield EVENTS_UNREAD.found(
            f"{counted(seen.no_events, 'record')} {_be(seen.no_events)} no whole event, {seen.first_no_event}.",
            evidence=(("records", seen.no_events),),
        )
    if collector.unread:
        yield EVENTS_UNREAD.found(
            f"{counted(collector.unread, 'value')} {_be(collector.unread)} not what the tag is for, or too large, "
            f'the first of "{collector.first_unread[:100]}".',
            subjects=(collector.first_unread[:100],),
            evidence=(("values", collector.unread),),
        )
    if collector.left_out:
        yield EVENTS_UNREAD.found(
            f"{counted(collector.left_out, 'value')} went beyond the "
            f"{human_bytes(collector.limits.memory_nbytes)} of memory that reading may take.",
            evidence=(("values", collector.left_out),),
        )


def _be(n: int, one: str = "is", several: str = "are") -> str:
    return one if n == 1 else several


def _log(seen: _Seen, name: str) -> EventLog:
    collector = seen.collector
    return EventLog(
        name=name,
        files=tuple(seen.files),
        findings=(*seen.findings, *_of_values(seen)),
        scalars=collector.scalars(),
        histograms=collector.series("histograms", HistogramPoint),
        curves=collector.series("pr_curves", CurvePoint),
        images=collector.series("images", ImagePoint),
        texts=collector.series("text", TextPoint),
        hyperparameters=tuple(collector.hyperparameters.items()),
        others=collector.others(),
        first_step=seen.steps[0] if seen.steps else None,
        last_step=seen.steps[1] if seen.steps else None,
        first_wall_time=seen.times[0] if seen.times else None,
        last_wall_time=seen.times[1] if seen.times else None,
        restarts=tuple(seen.restarts),
    )
