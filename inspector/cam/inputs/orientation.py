"""A picture as a viewer shows it: turned as its EXIF says, transparency over white, 8 bits of each colour.

Worked strip by strip, so that nothing beside the picture and its result lies in memory; each pixel depends on itself
alone, and the strips give what the whole would.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image

from inspector.cam.inputs.reduced import ReducedPicture

# Pixels of one strip: some 40 MB where it is worked on as float64.
_STRIP_PIXELS = 1 << 20
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_SWAPPED = {5, 6, 7, 8}
# A row of the picture as it lies becomes a row or column counted from the other end.
_FROM_THE_END = {3, 4, 6, 7}
_CLEAR = ("RGBA", "LA", "PA", "RGBa", "La")


def upright(picture: Image.Image) -> Image.Image:
    """The picture as a viewer shows it, mode RGB; the picture itself where that is what it is.

    16-bit greys keep their upper 8 bits' worth (rounded); 32-bit greys are scaled from 0..1, 0..255 or 0..65535,
    whichever is the smallest range that holds them.
    """
    return picture if isinstance(picture, ReducedPicture) else turned(picture, orientation_of(picture))


def turned(picture: Image.Image, turn: int) -> Image.Image:
    """The same for a turn that the picture does not carry itself. turn: EXIF's number."""
    picture.load()
    if _is_shown_as_it_lies(picture, turn):
        return picture
    shown = Image.new("RGB", turned_size(picture.size, turn))
    if "icc_profile" in picture.info:
        shown.info["icc_profile"] = picture.info["icc_profile"]
    for left, top, strip in _strips(picture, turn):
        shown.paste(strip, (left, top))
    return shown


def upright_array(picture: Image.Image) -> NDArray[np.uint8]:
    """(H, W, 3) of the upright picture, to be written into, without another one of its size on the way."""
    picture.load()
    turn = 1 if isinstance(picture, ReducedPicture) else orientation_of(picture)
    width, height = turned_size(picture.size, turn)
    array = np.empty((height, width, 3), dtype=np.uint8)
    for left, top, strip in _strips(picture, turn):
        array[top : top + strip.height, left : left + strip.width] = np.asarray(strip)
    return array


def _is_shown_as_it_lies(picture: Image.Image, turn: int) -> bool:
    return turn == 1 and picture.mode == "RGB" and "transparency" not in picture.info


def _strips(picture: Image.Image, turn: int) -> Iterator[tuple[int, int, Image.Image]]:
    """(left, top, strip) of the upright picture, mode RGB."""
    width, height = picture.size
    full, rows = full_range(picture), strip_rows(width)
    for top in range(0, height, rows):
        strip = flattened(picture.crop((0, top, width, min(top + rows, height))), full)
        across = height - top - strip.height if turn in _FROM_THE_END else top
        if turn in _TURNS:
            strip = strip.transpose(_TURNS[turn])
        yield (across, 0, strip) if turn in _SWAPPED else (0, across, strip)


def full_size(picture: Image.Image) -> tuple[int, int]:
    """(width, height) of the upright picture in its file's pixels, however coarsely it was read."""
    if isinstance(picture, ReducedPicture):
        return picture.full_size
    return turned_size(picture.size, orientation_of(picture))


def turned_size(size: tuple[int, int], orientation: int) -> tuple[int, int]:
    """(width, height) after the turn."""
    return (size[1], size[0]) if orientation in _SWAPPED else size


def turned_box(
    box: tuple[float, float, float, float], size: tuple[int, int], orientation: int
) -> tuple[float, float, float, float]:
    """(left, top, right, bottom) after the turn of a picture of this (width, height)."""
    left, top, right, bottom = box
    width, height = size
    mirrored = (width - right, width - left)
    upside_down = (height - bottom, height - top)
    across = mirrored if orientation in (2, 3, 7, 8) else (left, right)
    down = upside_down if orientation in (3, 4, 6, 7) else (top, bottom)
    if orientation in _SWAPPED:
        across, down = down, across
    return across[0], down[0], across[1], down[1]


def orientation_of(picture: Image.Image) -> int:
    """EXIF's number, from 1 (as it lies) to 8."""
    found = picture.getexif().get(ExifTags.Base.Orientation, 1)
    return found if found in _TURNS else 1


def strip_rows(width: int) -> int:
    """How many rows of a picture are worked on at a time."""
    return max(1, _STRIP_PIXELS // max(1, width))


def full_range(picture: Image.Image) -> float:
    """What is white: of a grey of 16 or 32 bits, by the largest value in the whole picture; 0.0 where 8 bits are."""
    if picture.mode.startswith("I;16"):
        return 65535.0
    if picture.mode not in ("I", "F"):
        return 0.0
    rows, (width, height) = strip_rows(picture.width), picture.size
    top = 0.0
    for start in range(0, height, rows):
        values = np.asarray(picture.crop((0, start, width, min(start + rows, height))), dtype=np.float64)
        top = max(top, float(np.nan_to_num(values).max(initial=0.0)))
    if picture.mode == "F" and top <= 1.0:
        return 1.0
    return 255.0 if top <= 255.0 else 65535.0


def flattened(strip: Image.Image, full: float) -> Image.Image:
    """Mode RGB, not turned. full: `full_range` of the picture that the strip is of."""
    if full:
        values = np.nan_to_num(np.asarray(strip, dtype=np.float64))
        grey = np.clip(np.round(values * (255.0 / full)), 0, 255).astype(np.uint8)
        return Image.fromarray(grey, mode="L").convert("RGB")
    if strip.mode in _CLEAR or "transparency" in strip.info:
        clear = strip.convert("RGBA")
        ground = Image.new("RGBA", clear.size, (255, 255, 255, 255))
        return Image.alpha_composite(ground, clear).convert("RGB")
    return strip.convert("RGB")
