"""The records of a TFRecord file, one after the other: length, its checksum, data, their checksum.

Source: tensorflow/core/lib/io/record_writer.h. A record whose data do not agree with their checksum is passed over,
since the next one's place is known; where the length itself does not, nothing behind it can be found.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache

from inspector.checkpoint.source import ByteSource
from inspector.events.checksum import masked
from inspector.readers.cursor import Cursor

HEADER_NBYTES = 12
FOOTER_NBYTES = 4
#: A record is held in memory whole; a graph or an image may take some megabytes.
MOST_RECORD_NBYTES = 64 << 20


class Records:
    """Iterating gives (offset of the data in the file, data). What was wrong stands here afterwards.

    good: records that were given. end: how far whole records were found. cut: (offset, bytes that it needs) of a
    last record that the file does not hold in full. damaged, large: offsets of records whose checksum does not agree,
    or that are too large, the first few; n_damaged, n_large: of how many. lost: offset of a length that is wrong.
    """

    def __init__(self, source: ByteSource, *, most_nbytes: int = MOST_RECORD_NBYTES) -> None:
        self.source = source
        self.most = most_nbytes
        self.good = self.n_damaged = self.n_large = self.end = 0
        self.cut: tuple[int, int] | None = None
        self.first_damaged: int | None = None
        self.first_large: int | None = None
        self.lost: int | None = None

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        cursor = Cursor(self.source)
        while (begin := cursor.at) < cursor.size:
            left = cursor.size - begin
            if left < HEADER_NBYTES:
                self.cut = begin, HEADER_NBYTES
                return
            header = cursor.take(HEADER_NBYTES)
            length = _length(header)
            if length is None:
                self.lost = begin
                return
            needed = HEADER_NBYTES + length + FOOTER_NBYTES
            if needed > left:
                self.cut = begin, needed
                return
            start = cursor.at
            if length > self.most:
                self.n_large += 1
                self.first_large = begin if self.first_large is None else self.first_large
                cursor.at = start + length + FOOTER_NBYTES
                self.end = cursor.at
                continue
            data = cursor.take(length)
            (stated,) = struct.unpack("<I", cursor.take(FOOTER_NBYTES))
            self.end = cursor.at
            if masked(data) != stated:
                self.n_damaged += 1
                self.first_damaged = begin if self.first_damaged is None else self.first_damaged
                continue
            self.good += 1
            yield start, data


@lru_cache(maxsize=4096)
def _length(header: bytes) -> int | None:
    """The length that a header states, None where its checksum is another one."""
    length, stated = struct.unpack("<QI", header)
    return length if masked(header[:8]) == stated else None


def record(data: bytes) -> bytes:
    """The bytes of one record."""
    length = struct.pack("<Q", len(data))
    return b"".join((length, struct.pack("<I", masked(length)), data, struct.pack("<I", masked(data))))
