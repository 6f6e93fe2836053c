"""Protocol buffers in memory: fields of a message that is there whole, and messages made of fields.

Source: protobuf.dev/programming-guides/encoding. `readers/formats/onnx/protobuf.py` walks over files whose messages are
too large to be held; an event is some sixty bytes, and there are millions, so that here a field is a plain tuple.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from inspector.readers.formats.onnx.protobuf import BYTES, FIXED32, FIXED64, VARINT, BadWire

_MASK = (1 << 64) - 1


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(number, wire type, value of a varint or start of the payload, end of the field) of the message at .. end.

    Raises BadWire.
    """
    while at < end:
        begin = at
        tag, at = _varint(data, at, end)
        wire = tag & 7
        if not 1 <= tag >> 3 < 1 << 29:
            raise BadWire(f"the field at byte {begin:,} has the number {tag >> 3:,}")
        if wire == BYTES:
            length, start = _varint(data, at, end)
            at = start + length
        elif wire == VARINT:
            start, at = _varint(data, at, end)
        elif wire == FIXED32:
            start, at = at, at + 4
        elif wire == FIXED64:
            start, at = at, at + 8
        else:
            raise BadWire(f"the field at byte {begin:,} has the wire type {wire}")
        if at > end:
            raise BadWire(f"the field at byte {begin:,} ends {at - end:,} bytes behind its message")
        yield tag >> 3, wire, start, at


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The number at a place, unsigned, and where it ends."""
    if at >= end:
        raise BadWire(f"the message ends at byte {end:,} inside a field")
    byte = data[at]
    at += 1
    if byte < 0x80:
        return byte, at
    value, shift = byte & 0x7F, 7
    while True:
        if at >= end:
            raise BadWire(f"the message ends at byte {end:,} inside a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, at
        shift += 7
        if shift >= 70:
            raise BadWire(f"the number before byte {at:,} is longer than ten bytes")


def varint(number: int, value: int) -> bytes:
    """A field of an integer; negative ones as int64."""
    return _number(number << 3 | VARINT) + _number(value & _MASK)


def message(number: int, *parts: bytes) -> bytes:
    """A field of bytes: a message of these parts, a text in UTF-8, packed numbers."""
    nbytes = sum(map(len, parts))
    return b"".join((_number(number << 3 | BYTES), _number(nbytes), *parts))


def text(number: int, value: str) -> bytes:
    """A field of text. What is no UTF-8 is written as "?"."""
    return message(number, value.encode("utf-8", "replace"))


def double(number: int, value: float) -> bytes:
    """A field of a float64."""
    return _number(number << 3 | FIXED64) + struct.pack("<d", value)


def single(number: int, value: float) -> bytes:
    """A field of a float32; what is beyond its range is infinite."""
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        packed = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    return _number(number << 3 | FIXED32) + packed


def packed_varints(number: int, values: Iterable[int]) -> bytes:
    """A field of several integers."""
    return message(number, *(_number(value & _MASK) for value in values))


def _number(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
