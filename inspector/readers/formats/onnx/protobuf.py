"""Protocol buffers' wire format, walked without a schema and without reading what is not asked for.

Source: protobuf.dev/programming-guides/encoding. A field's payload is a range of the file; nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from inspector.errors import LimitExceeded
from inspector.readers.cursor import Cursor, Ended

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MASK = (1 << 64) - 1


class BadWire(ValueError):
    """What is no protocol buffer; the text says where and why."""


class Field(NamedTuple):
    """One field. value: of a varint. start, nbytes: of its payload in the file, which may end behind the file's end.

    end: one past its last byte.
    """

    number: int
    wire: int
    value: int
    start: int
    nbytes: int
    end: int


class Walk:
    """Goes over messages. cut: the file ended inside one of them. left: how many more fields are looked at."""

    def __init__(self, cursor: Cursor, most_fields: int) -> None:
        self.cursor = cursor
        self.most = self.left = most_fields
        self.cut = False

    def fields(self, start: int, end: int | None) -> Iterator[Field]:
        """The fields of the message at start .. end. The cursor may be moved while one is looked at.

        end: None for the outermost message, which has no length and goes as far as the file.
        Ends early, with `cut` set, where the file does. Raises BadWire, and LimitExceeded for too many fields.
        """
        cursor = self.cursor
        at = start
        while end is None or at < end:
            if at >= cursor.size:
                self.cut = self.cut or end is not None or at > cursor.size
                return
            if not self.left:
                raise LimitExceeded(f"{cursor.source.name} has more than {self.most:,} protobuf fields.")
            self.left -= 1
            cursor.at = at
            try:
                field = self._field()
            except Ended:
                self.cut = True
                return
            if end is not None and field.end > end:
                raise BadWire(f"the field at byte {at:,} ends {field.end - end:,} bytes behind its message")
            yield field
            at = field.end

    def _field(self) -> Field:
        cursor = self.cursor
        begin = cursor.at
        tag = self.varint()
        number, wire = tag >> 3, tag & 7
        if not 1 <= number < 1 << 29:
            raise BadWire(f"the field at byte {begin:,} has the number {number:,}")
        if wire == VARINT:
            value = self.varint()
            return Field(number, wire, value, cursor.at, 0, cursor.at)
        if wire == BYTES:
            n = self.varint()
            return Field(number, wire, 0, cursor.at, n, cursor.at + n)
        if wire in (FIXED32, FIXED64):
            n = 4 if wire == FIXED32 else 8
            return Field(number, wire, 0, cursor.at, n, cursor.at + n)
        raise BadWire(f"the field at byte {begin:,} has the wire type {wire}")

    def varint(self) -> int:
        """The number at the cursor: unsigned, 64 bits."""
        byte = self.cursor.byte()
        if byte < 0x80:  # Nearly all of them.
            return byte
        value, shift = byte & 0x7F, 7
        while True:
            byte = self.cursor.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & _MASK
            shift += 7
            if shift >= 70:
                raise BadWire(f"the number before byte {self.cursor.at:,} is longer than ten bytes")

    def read(self, field: Field, most: int) -> bytes:
        """The first `most` bytes of a field's payload, fewer where the file ends."""
        self.cursor.at = field.start
        n = max(0, min(field.nbytes, most, self.cursor.size - field.start))
        return self.cursor.take(n) if n else b""


def signed(value: int) -> int:
    """A varint as int64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def unpack_varints(raw: bytes) -> list[int] | bytes:
    """Packed varints, unsigned. Raises BadWire when the last one is not finished, or one is too long."""
    if not raw or max(raw) < 0x80:
        return raw
    found: list[int] = []
    value = shift = 0
    for byte in raw:
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            found.append(value & _MASK)
            value = shift = 0
        else:
            shift += 7
            if shift >= 70:
                raise BadWire("a packed number is longer than ten bytes")
    if shift:
        raise BadWire("the last packed number is not finished")
    return found
