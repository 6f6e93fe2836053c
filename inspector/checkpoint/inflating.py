"""Deflated bytes inflated a piece at a time, to the last one."""

from __future__ import annotations

import zlib
from collections.abc import Iterator


def inflated(inflater: zlib._Decompress, packed: bytes, most: int) -> Iterator[bytes]:
    """What the inflater makes of these bytes, at most so many at a time. Raises zlib.error.

    A piece that is filled to the end may have taken all of the input and still owe bytes: zlib holds up to 258 of a
    repetition, as long zeros are one. They come when it is asked again, without input.
    """
    while True:
        part = inflater.decompress(packed, most)
        packed = inflater.unconsumed_tail
        if part:
            yield part
        if not packed and len(part) < most:
            return
