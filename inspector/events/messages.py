"""An event as a plain record: when, at which step, and the values of its summary.

Source: tensorboard/compat/proto/event.proto and summary.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from inspector.events.wire import fields
from inspector.readers.flat import whole_text
from inspector.readers.formats.onnx.protobuf import BYTES, FIXED32, FIXED64, VARINT, BadWire, signed

_Span = tuple[int, int]
_NAME_NBYTES = 200
_MOST_TAG_NBYTES = 4096
_DESCRIPTION_NBYTES = 2000
_DOUBLE = struct.Struct("<d")
_SINGLE = struct.Struct("<f")
_START = 1
# Numbers of a histogram that are not packed into one field, as writers do.
_MOST_FIELDS = 1 << 15


@dataclass(slots=True)
class Event:
    """summary: where it lies. graph_nbytes: of a graph. started: a training says that it begins at this step."""

    wall_time: float = 0.0
    step: int = 0
    summary: _Span | None = None
    version: str = ""
    writer: str = ""
    graph_nbytes: int = 0
    started: bool = False


@dataclass(slots=True)
class Metadata:
    """What is said of a tag when it first occurs. content: of the plugin's own, where it lies."""

    plugin: str = ""
    title: str = ""
    description: str = ""
    content: _Span = (0, 0)


@dataclass(slots=True)
class SummaryValue:
    """One value. kind: the number of its field in Summary.Value (2 a float, 4 an image, 5 a histogram, 8 a tensor), 0
    without one. span: of its message. tag: None where it is too long to be one."""

    tag: str | None = ""
    kind: int = 0
    number: float = 0.0
    span: _Span = (0, 0)
    metadata: Metadata | None = None


def read_event(data: bytes) -> Event:
    """Raises BadWire for what is no message."""
    event = Event()
    for number, wire, start, end in fields(data, 0, len(data)):
        if wire == FIXED64:
            if number == 1:
                (event.wall_time,) = _DOUBLE.unpack_from(data, start)
        elif wire == VARINT:
            if number == 2:
                event.step = signed(start)
        elif wire != BYTES:
            continue
        elif number == 5:
            event.summary = start, end
        elif number == 3:
            event.version = _text(data, start, end)
        elif number in (4, 9):
            event.graph_nbytes = end - start
        elif number == 7:
            event.started = any(n == 1 and w == VARINT and v == _START for n, w, v, _ in fields(data, start, end))
        elif number == 10:
            event.writer = next(
                (_text(data, s, e) for n, w, s, e in fields(data, start, end) if (n, w) == (1, BYTES)), ""
            )
    return event


def read_values(data: bytes, span: _Span) -> Iterator[SummaryValue]:
    """The values of a summary. Raises BadWire."""
    for number, wire, start, end in fields(data, *span):
        if number == 1 and wire == BYTES:
            yield _value(data, start, end)


def _value(data: bytes, at: int, end: int) -> SummaryValue:
    value = SummaryValue()
    for number, wire, start, stop in fields(data, at, end):
        if number == 1 and wire == BYTES:
            value.tag = whole_text(data[start:stop]) if stop - start <= _MOST_TAG_NBYTES else None
        elif number == 2 and wire == FIXED32:
            value.kind = number
            (value.number,) = _SINGLE.unpack_from(data, start)
        elif number in (3, 4, 5, 6, 8) and wire == BYTES:
            value.kind = number
            value.span = start, stop
        elif number == 9 and wire == BYTES:
            value.metadata = _metadata(data, start, stop)
    return value


def _metadata(data: bytes, at: int, end: int) -> Metadata:
    metadata = Metadata()
    for number, wire, start, stop in fields(data, at, end):
        if wire != BYTES:
            continue
        if number == 1:
            for inner, kind, begin, finish in fields(data, start, stop):
                if (inner, kind) == (1, BYTES):
                    metadata.plugin = _text(data, begin, finish)
                elif (inner, kind) == (2, BYTES):
                    metadata.content = begin, finish
        elif number == 2:
            metadata.title = _text(data, start, stop)
        elif number == 3:
            metadata.description = _text(data, start, min(stop, start + _DESCRIPTION_NBYTES), most=_DESCRIPTION_NBYTES)
    return metadata


def read_image(data: bytes, span: _Span) -> tuple[int, int, _Span]:
    """(width, height, where the encoded bytes lie) of a Summary.Image."""
    height = width = 0
    place = (0, 0)
    for number, wire, start, end in fields(data, *span):
        if number in (1, 2) and wire == VARINT:
            height, width = (start, width) if number == 1 else (height, start)
        elif number == 4 and wire == BYTES:
            place = start, end
    return _size(width), _size(height), place


def _size(value: int) -> int:
    return value if value < 1 << 31 else 0


def read_hyperparameters(data: bytes, span: _Span) -> Iterator[tuple[str, str | float | bool]]:
    """Names and values of an HParamsPluginData's session_start_info. Raises BadWire."""
    for number, wire, start, end in fields(data, *span):
        if (number, wire) != (3, BYTES):
            continue
        for inner, kind, begin, stop in fields(data, start, end):
            if (inner, kind) == (1, BYTES):
                yield _hyperparameter(data, begin, stop)


def _hyperparameter(data: bytes, at: int, end: int) -> tuple[str, str | float | bool]:
    name = ""
    found: str | float | bool = ""
    for number, wire, start, stop in fields(data, at, end):
        if (number, wire) == (1, BYTES):
            name = _text(data, start, stop)
        elif (number, wire) == (2, BYTES):
            # google.protobuf.Value
            for inner, kind, begin, finish in fields(data, start, stop):
                if (inner, kind) == (2, FIXED64):
                    (found,) = _DOUBLE.unpack_from(data, begin)
                elif (inner, kind) == (3, BYTES):
                    found = _text(data, begin, finish, most=_DESCRIPTION_NBYTES)
                elif (inner, kind) == (4, VARINT):
                    found = bool(begin)
    return name, found


def _text(data: bytes, start: int, end: int, *, most: int = _NAME_NBYTES) -> str:
    return whole_text(data[start : min(end, start + most)])


def read_histogram(data: bytes, span: _Span) -> tuple[float, float, list[_Span], list[_Span]]:
    """(minimum, maximum, where the right edges lie, where the counts lie) of a HistogramProto; packed or one by one."""
    low = high = 0.0
    edges: list[_Span] = []
    counts: list[_Span] = []
    for number, wire, start, end in fields(data, *span):
        if wire == FIXED64 and number in (1, 2):
            (number_found,) = _DOUBLE.unpack_from(data, start)
            low, high = (number_found, high) if number == 1 else (low, number_found)
        elif wire in (BYTES, FIXED64) and number in (6, 7):
            if (end - start) % 8:
                raise BadWire(f"the numbers at byte {start:,} are no whole float64")
            if len(edges) + len(counts) >= _MOST_FIELDS:
                raise BadWire(f"a histogram has more than {_MOST_FIELDS:,} fields")
            (edges if number == 6 else counts).append((start, end))
    return low, high, edges, counts
