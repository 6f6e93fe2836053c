"""Where a zip's end record is found, as torch finds it, and behind how much else it no longer does.

torch's reader looks in windows from the end backwards (caffe2's copy of miniz, mz_zip_reader_locate_header_sig). It
goes no further than 69,584 bytes, and over the beginning of a smaller file where none of its windows begins at byte 0:
then the operating system refuses the seek. Measured with torch 2.15 (tests/readers/test_zip_end.py).
"""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import replace

from inspector.checkpoint.joined_source import SliceSource
from inspector.checkpoint.source import ByteSource
from inspector.errors import CorruptFile, ReadError
from inspector.limits import Limits
from inspector.readers.archives.zip_directory import Directory, read_directory
from inspector.readers.checks.torch_words import NO_DIRECTORY, NO_SEEK

_WINDOW, _STEP = 4096, 4093
# The longest comment, and the record before it; a window that begins farther away is the last.
_FARTHEST = 65_535 + 22
_END = b"PK\x05\x06"
_END_NBYTES = 22
_MOST_ENDS = 16
_FAR_NBYTES, _MOST_WINDOWS = 1 << 20, 64
# A directory's entry: 46 bytes, a name, and what torch writes beside it.
_ENTRY_NBYTES = 512
_LEAST_LOOK = 1 << 16


def search_refusal(size: int, at: int) -> str:
    """What torch.load says to a file of that size whose last end record begins at `at` (-1 for none); "" where it is
    found."""
    start = max(0, size - _WINDOW)
    while True:
        if at >= start and size - at >= _END_NBYTES:
            return ""
        if start == 0 or size - start >= _FARTHEST:
            return NO_DIRECTORY
        start -= _STEP
        if start < 0:
            return NO_SEEK


def far_end(source: ByteSource, limits: Limits) -> int | None:
    """Where a whole archive ends that so much follows that nobody looking from the end finds it; None for none in the
    last 64 MB."""
    stop = source.size
    for _ in range(_MOST_WINDOWS):
        start = max(0, stop - _FAR_NBYTES)
        at = source.read(start, stop - start).rfind(_END)
        end = start + at + _END_NBYTES
        if at >= 0 and end <= source.size:
            end = min(end + int.from_bytes(source.read(end - 2, 2), "little"), source.size)
            with suppress(ReadError):
                read_directory(SliceSource(source, 0, end), limits)
                return end
        stop = start + at if at >= 0 else start + len(_END) - 1
        if not start and at < 0:
            return None
    return None


def directory_in_front(source: ByteSource, start: int, members: int, limits: Limits) -> Directory | None:
    """The directory of an archive that so many bytes follow that nobody looking from the end finds it.

    start: where its last member ends. members: about how many there are. None where none begins there.
    """
    window = source.read(start, min(source.size - start, _LEAST_LOOK + _ENTRY_NBYTES * members))
    at = -1
    for _ in range(_MOST_ENDS):
        at = window.find(_END, at + 1)
        if at < 0 or at + _END_NBYTES > len(window):
            return None
        (comment,) = struct.unpack("<H", window[at + 20 : at + 22])
        end = start + at + _END_NBYTES + comment
        if end > source.size:
            continue
        try:
            found = read_directory(SliceSource(source, 0, end), limits)
        except CorruptFile:
            continue
        return replace(found, trailing_nbytes=source.size - end)
    return None
