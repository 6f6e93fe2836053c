"""Event files for the tests, built by hand from bytes or written by the calls under test."""

from __future__ import annotations

import io
from collections.abc import Callable

from inspector.checkpoint.source import BufferSource
from inspector.events.read import read_events
from inspector.events.records import record
from inspector.events.report import EventLog
from inspector.events.wire import double, message, single, text, varint
from inspector.events.write import EventWriter

WHEN = 1_700_000_000.0


def written(write: Callable[[EventWriter], object]) -> bytes:
    """The bytes of a file that `write` fills."""
    file = io.BytesIO()
    write(EventWriter(file, WHEN))
    return file.getvalue()


def scalars(count: int, tag: str = "loss") -> bytes:
    """Steps 0 .. count - 1, each the number of its step."""

    def write(writer: EventWriter) -> None:
        for step in range(count):
            writer.scalar(tag, step, float(step), WHEN + step)

    return written(write)


def event(*parts: bytes, step: int = 0) -> bytes:
    """A record of an event with these fields."""
    return record(double(1, WHEN) + varint(2, step) + b"".join(parts))


def value(tag: str, *parts: bytes, step: int = 0) -> bytes:
    """A record of a summary of one value with these fields."""
    return event(message(5, message(1, text(1, tag), *parts)), step=step)


def plain_scalar(tag: str, number: float, step: int = 0) -> bytes:
    return value(tag, single(2, number), step=step)


def metadata(plugin: str, content: bytes = b"") -> bytes:
    return message(9, message(1, text(1, plugin), message(2, content)))


def read(data: bytes) -> EventLog:
    return read_events(BufferSource(data, "events.out.tfevents.1"))


def points(log: EventLog, tag: str) -> list[tuple[int, float]]:
    series = log.scalar(tag)
    assert series is not None
    return [(step, number) for step, number, _ in series]
