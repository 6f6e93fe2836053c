"""Small pictures as PNG files with nothing but the standard library (PNG specification, third edition, 2025).

For figures: a plain installation has no Pillow. Pictures that people bring go through `overlay.png_bytes`.
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

# Bits of a channel, then what a pixel is by its channels: grey, grey and alpha, RGB, RGBA.
_DEPTH = 8
_COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}


def plain_png(pixels: NDArray[np.uint8]) -> bytes:
    """(height, width, channels) uint8, 1 to 4 channels, as a PNG file without metadata: equal pixels, equal bytes."""
    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # Each row begins with its filter: 0, none.
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, _DEPTH, _COLOUR_TYPES[channels], 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_address(png: bytes) -> str:
    """A PNG file as an address that holds it."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")
