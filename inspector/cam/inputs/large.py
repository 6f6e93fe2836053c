"""Large pictures, scaled while they are decoded, so that a photo of 200 megapixels needs no gigabyte.

JPEG: the decoder itself makes a half, a quarter or an eighth of each side from the frequencies. PNG: rows are read in
strips and averaged. Everything else is decoded whole by Pillow and averaged afterwards, which is refused where it
would take too much, as is a JPEG whose decoder has to hold all frequencies at once (progressive ones).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from PIL import Image, JpegImagePlugin

from inspector.cam.inputs import png_rows
from inspector.cam.inputs.orientation import (
    flattened,
    full_range,
    orientation_of,
    strip_rows,
    turned,
    turned_box,
    turned_size,
)
from inspector.cam.inputs.png_rows import PngHeader
from inspector.cam.inputs.reduced import ReducedPicture
from inspector.errors import ExplainError
from inspector.units import human_bytes

# Beyond this a picture is refused: telephones reach 200 megapixels.
MOST_PIXELS = 250_000_000
MOST_SIDE = 100_000
# Up to here every pixel is kept: with the picture turned and its overlay it stays under 300 MB.
MOST_WHOLE_PIXELS = 26_000_000
# Of what is read of a larger one: more than any model's input or a screen asks for.
_MOST_READ_PIXELS = 16_000_000
# What a decoder that cannot scale may hold.
_MOST_DECODED_NBYTES = 240_000_000
_FACTORS = (2, 4, 8)
# As Pillow keeps them: three channels lie in four bytes.
_PIXEL_NBYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2}
_COEFFICIENT_NBYTES = 2


def size_of(file: BinaryIO) -> tuple[int, int]:
    """(width, height) as the file's header states them, whatever its size; raises as Pillow does for what is none."""
    header = png_rows.read_header(file)
    if header is not None:
        return header.width, header.height
    file.seek(0)
    if file.read(3) == b"\xff\xd8\xff":
        return _opened_jpeg(file).size
    file.seek(0)
    with Image.open(file) as picture:
        return picture.size


def read_large(file: BinaryIO, size: tuple[int, int]) -> ReducedPicture:
    """A picture of more than MOST_WHOLE_PIXELS. Raises ExplainError where that takes too much, as Pillow otherwise."""
    width, height = size
    if max(size) > MOST_SIDE:
        raise ExplainError(
            f"The picture has {width} x {height} pixels; of one that large the longer side may have {MOST_SIDE:,}.",
            hint="Cut out the part that matters.",
        )
    fitting = (n for n in _FACTORS if -(-width // n) * -(-height // n) <= _MOST_READ_PIXELS)
    factor = next(fitting, _FACTORS[-1])
    header = png_rows.read_header(file)
    if header is not None and not header.interlaced:
        return _of_png(file, header, factor)
    file.seek(0)
    if file.read(3) == b"\xff\xd8\xff":
        return _of_jpeg(_opened_jpeg(file), factor)
    file.seek(0)
    return _of_whole(Image.open(file), factor)


def _opened_jpeg(file: BinaryIO) -> JpegImagePlugin.JpegImageFile:
    """Not by Image.open, which refuses from 179 megapixels on."""
    file.seek(0)
    return JpegImagePlugin.JpegImageFile(file)


def _of_jpeg(picture: JpegImagePlugin.JpegImageFile, factor: int) -> ReducedPicture:
    width, height = picture.size
    if not _is_one_scan(picture):
        samples = [(across, down) for _, across, down, _ in picture.layer]
        most = max(across for across, _ in samples) * max(down for _, down in samples)
        share = sum(across * down for across, down in samples) / most
        _check_decoded(width, height, int(width * height * share * _COEFFICIENT_NBYTES), "a progressive JPEG")
    if picture.draft(None, (width // factor, height // factor)) is None:
        raise OSError("image file is truncated")  # before the first scan
    # Pillow takes the largest step that keeps both sides as large as was asked for.
    factor = picture.decoderconfig[0]
    return _reduced(picture, (width, height), factor, orientation_of(picture))


def _is_one_scan(picture: JpegImagePlugin.JpegImageFile) -> bool:
    """Whether the decoder can forget each row: the first scan, whose header was read last, is of all the colours."""
    if picture.info.get("progressive") or picture.fp is None:
        return False
    count = len(picture.layer)
    header_nbytes = 6 + 2 * count
    file, after = picture.fp, picture.fp.tell()
    file.seek(after - header_nbytes - 2)
    start = file.read(5)
    file.seek(after)
    return bool(start == b"\xff\xda" + header_nbytes.to_bytes(2, "big") + bytes([count]))


def _of_png(file: BinaryIO, header: PngHeader, factor: int) -> ReducedPicture:
    rows = max(1, strip_rows(header.width) // factor) * factor
    # Of 16-bit greys the whole range is theirs; of colours the upper byte was taken.
    full = 65535.0 if header.depth == 16 and header.colour == 0 else 0.0
    strips = (flattened(strip, full) for strip in png_rows.read_strips(file, header, rows))
    size = (header.width, header.height)
    pixels = _averaged(strips, size, factor)
    return _reduced(pixels, size, factor, png_rows.read_orientation(file))


def _of_whole(picture: Image.Image, factor: int) -> ReducedPicture:
    width, height = picture.size
    nbytes = width * height * _PIXEL_NBYTES.get(picture.mode, 4)
    # WebP's decoder holds a second one.
    _check_decoded(width, height, nbytes * (2 if picture.format == "WEBP" else 1), f"a {picture.format} file")
    picture.load()
    full, rows = full_range(picture), max(1, strip_rows(width) // factor) * factor
    strips = (flattened(picture.crop((0, top, width, min(top + rows, height))), full) for top in range(0, height, rows))
    pixels = _averaged(strips, (width, height), factor)
    return _reduced(pixels, (width, height), factor, orientation_of(picture))


def _averaged(strips: Iterator[Image.Image], size: tuple[int, int], factor: int) -> Image.Image:
    """Every factor x factor pixels as their mean, fewer at the right and lower edge. Strips: whole steps high."""
    pixels = Image.new("RGB", (-(-size[0] // factor), -(-size[1] // factor)))
    top = 0
    for strip in strips:
        pixels.paste(strip.reduce(factor), (0, top))
        top += -(-strip.height // factor)
    return pixels


def _reduced(pixels: Image.Image, size: tuple[int, int], factor: int, orientation: int) -> ReducedPicture:
    """size: of the file's picture; neither it nor the pixels are turned yet."""
    box = turned_box((0.0, 0.0, size[0] / factor, size[1] / factor), pixels.size, orientation)
    return ReducedPicture(turned(pixels, orientation), full_size=turned_size(size, orientation), box=box)


def _check_decoded(width: int, height: int, nbytes: int, what: str) -> None:
    if nbytes > _MOST_DECODED_NBYTES:
        raise ExplainError(
            f"The picture has {width} x {height} pixels; {what} of that size takes {human_bytes(nbytes)} to decode, "
            f"more than the {human_bytes(_MOST_DECODED_NBYTES)} that are spent.",
            hint="Save it as an ordinary JPEG or PNG, or scale it down.",
        )
