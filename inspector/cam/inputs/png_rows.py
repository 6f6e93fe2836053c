"""The rows of a PNG file, some at a time: Pillow decodes the whole picture at once, at four bytes a pixel.

Rows are inflated as they are asked for and unfiltered by Pillow's own decoder, which is given a few of them with the
row before as its first. A filter works on bytes that are one pixel apart, each for itself, so the upper bytes of
16-bit colours are unfiltered without the lower ones, and packed pixels as the bytes they are packed in.
PNG specification, third edition, W3C 2025: sections 5, 9 and 11.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image

from inspector.checkpoint.inflating import inflated

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
# The modes whose pixels are as many bytes.
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_MOST_SMALL = 1 << 20
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PngHeader:
    """depth: bits of one channel. colour: the specification's number of the kind of colour."""

    width: int
    height: int
    depth: int
    colour: int
    interlaced: bool

    @property
    def row_nbytes(self) -> int:
        """Without the byte that names its filter."""
        return (self.width * _CHANNELS[self.colour] * self.depth + 7) // 8


@dataclass(slots=True, kw_only=True)
class _Chunks:
    """What stands beside the pixels, as far as it has been met."""

    palette: bytes = b""
    transparency: bytes = b""
    exif: bytes = b""
    packed: list[bytes] = field(default_factory=list)


def read_header(file: BinaryIO) -> PngHeader | None:
    """Of a file that begins as a whole PNG file does; None for every other. Leaves the file at its begin."""
    file.seek(0)
    start = file.read(33)
    file.seek(0)
    if not start.startswith(_SIGNATURE + b"\0\0\0\rIHDR") or len(start) < 33:
        return None
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", start[16:29])
    if not width or not height or depth not in _DEPTHS.get(colour, ()):
        return None
    return PngHeader(width=width, height=height, depth=depth, colour=colour, interlaced=bool(interlaced))


def read_strips(file: BinaryIO, header: PngHeader, rows: int) -> Iterator[Image.Image]:
    """The picture from top to bottom, `rows` rows at a time, as Pillow would give it; upper bytes of 16-bit colours.

    Raises OSError for a file that is cut or damaged.
    """
    chunks = _Chunks()
    stride = 1 + header.row_nbytes
    lines = _inflated(file, chunks)
    before, left = b"", header.height
    prior: NDArray[np.uint8] | None = None
    while left:
        wanted = min(rows, left) * stride
        pieces = [before]
        have = len(before)
        while have < wanted:
            piece = next(lines, b"")
            if not piece:
                raise OSError("image file is truncated")
            pieces.append(piece)
            have += len(piece)
        data = b"".join(pieces)
        before = data[wanted:]
        strip, prior = _unfiltered(data[:wanted], header, prior)
        yield _as_picture(strip, header, chunks)
        left -= min(rows, left)


def read_orientation(file: BinaryIO) -> int:
    """EXIF's number of the turn, 1 where none is stated."""
    file.seek(len(_SIGNATURE))
    while len(head := file.read(8)) == 8:
        length, name = struct.unpack(">I4s", head)
        if name == b"eXIf" and length <= _MOST_SMALL:
            exif = Image.Exif()
            exif.load(b"Exif\0\0" + file.read(length))
            return int(exif.get(ExifTags.Base.Orientation, 1))
        if name == b"IEND":
            break
        file.seek(length + 4, 1)
    return 1


def _inflated(file: BinaryIO, chunks: _Chunks) -> Iterator[bytes]:
    """The rows' bytes in pieces of some 4 MB at most; fills in what stands before them."""
    inflate = zlib.decompressobj()
    file.seek(len(_SIGNATURE))
    while len(head := file.read(8)) == 8:
        length, name = struct.unpack(">I4s", head)
        if name == b"IDAT":
            yield from _of_chunk(file, length, inflate)
        elif name in (b"PLTE", b"tRNS") and length <= 768:
            data = file.read(length)
            if name == b"PLTE":
                chunks.palette = data
            else:
                chunks.transparency = data
        elif name == b"IEND":
            return
        else:
            file.seek(length, 1)
        file.seek(4, 1)


def _of_chunk(file: BinaryIO, length: int, inflate: zlib._Decompress) -> Iterator[bytes]:
    while length:
        data = file.read(min(_PIECE, length))
        if not data:
            return
        length -= len(data)
        try:
            yield from inflated(inflate, data, 1 << 22)
        except zlib.error as error:
            raise OSError("broken data stream when reading image file") from error


def _unfiltered(
    data: bytes, header: PngHeader, prior: NDArray[np.uint8] | None
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """((rows, pixels, bytes of each) without filters, the last row, for the next strip)."""
    lines = np.frombuffer(data, dtype=np.uint8).reshape(-1, 1 + header.row_nbytes)
    count, channels = len(lines), _CHANNELS[header.colour]
    body = lines[:, 1:].reshape(count, -1, channels * header.depth // 8 or 1)
    if header.depth == 16 and header.colour != 0:
        body = body[:, :, 0::2]
    _, width, size = body.shape
    filled = np.zeros((count + 1, 1 + width * size), dtype=np.uint8)
    filled[1:, 0] = lines[:, 0]
    filled[1:, 1:] = body.reshape(count, -1)
    if prior is not None:
        filled[0, 1:] = prior
    mode = _MODES[size]
    packed = zlib.compress(filled.tobytes(), 0)
    del filled
    try:
        whole = Image.frombytes(mode, (width, count + 1), packed, "zip", mode)
    except ValueError as error:
        raise OSError("broken data stream when reading image file") from error
    pixels = np.asarray(whole).reshape(count + 1, width, size)[1:]
    return pixels, pixels[-1].reshape(-1)


def _as_picture(pixels: NDArray[np.uint8], header: PngHeader, chunks: _Chunks) -> Image.Image:
    rows, _, size = pixels.shape
    if header.colour == 0 and header.depth == 16:
        return Image.fromarray((pixels[..., 0].astype(np.uint16) << 8) | pixels[..., 1])
    if header.depth < 8:
        packed = np.unpackbits(pixels[..., 0], axis=1).reshape(rows, -1, header.depth)
        weights = (1 << np.arange(header.depth - 1, -1, -1)).astype(np.uint8)
        values = (packed * weights).sum(axis=2, dtype=np.uint8)[:, : header.width]
        if header.colour == 0:
            values = values * np.uint8(255 // ((1 << header.depth) - 1))
        pixels = values[..., None]
        size = 1
    picture = Image.fromarray(np.ascontiguousarray(pixels[..., 0] if size == 1 else pixels), mode=_MODES[size])
    if header.colour == 3:
        picture.putpalette(chunks.palette)
        if chunks.transparency:
            picture.info["transparency"] = chunks.transparency
    elif chunks.transparency and header.colour == 0:
        value = int.from_bytes(chunks.transparency[:2], "big")
        picture.info["transparency"] = value * (255 // ((1 << header.depth) - 1)) & 255
    elif len(chunks.transparency) >= 6 and header.colour == 2 and header.depth == 8:
        picture.info["transparency"] = tuple(chunks.transparency[1:6:2])
    return picture
