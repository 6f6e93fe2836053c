"""What lies above a threshold of a heat map: its outline and the box around it, on the picture."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inspector.cam.report import Crop
from inspector.render.overlay import crop_pixels, resample

_ROWS = 256
# Of the picture that a box is found in: 130 MB for the mask and the numbers of its parts.
_MOST_PIXELS = 26_000_000
# White on black is seen on any picture.
_INSIDE, _AROUND = (255, 255, 255), (0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlined:
    """share: of the crop's pixels at or above the threshold. box: left, top, right, bottom of the largest connected
    part in pixels of the upright picture, right and bottom behind the last one; None when nothing is above."""

    share: float
    box: tuple[int, int, int, int] | None


def outline_of(heat: NDArray[np.float32], crop: Crop, threshold: float) -> Outlined:
    """What is at or above the threshold; of a picture too large to be drawn whole, on every second, fourth or eighth
    pixel, which is how exact its box is."""
    width, height = crop.picture_width, crop.picture_height
    step = next(n for n in (1, 2, 4, 8, 16) if width * height <= _MOST_PIXELS * n * n or n == 16)
    coarse = replace(
        crop,
        left=crop.left / step,
        top=crop.top / step,
        width=crop.width / step,
        height=crop.height / step,
        picture_width=-(-width // step),
        picture_height=-(-height // step),
    )
    found = measure_outline(above(heat, coarse, threshold), coarse)
    if found.box is None or step == 1:
        return found
    left, top, right, bottom = (step * edge for edge in found.box)
    return replace(found, box=(left, top, min(right, width), min(bottom, height)))


def above(heat: NDArray[np.float32], crop: Crop, threshold: float) -> NDArray[np.bool_]:
    """(H, W) of the upright picture: where the heat is at or above the threshold; False outside the crop."""
    rows, columns = crop_pixels(crop)
    mask = np.zeros((crop.picture_height, crop.picture_width), dtype=np.bool_)
    if rows.stop > rows.start and columns.stop > columns.start:
        across = resample(heat, columns, crop.left, crop.width, axis=1)
        for first in range(rows.start, rows.stop, _ROWS):
            some = range(first, min(first + _ROWS, rows.stop))
            inside = resample(across, some, crop.top, crop.height, axis=0)
            mask[some.start : some.stop, columns.start : columns.stop] = inside >= threshold
    return mask


def measure_outline(mask: NDArray[np.bool_], crop: Crop) -> Outlined:
    """mask: of `above`."""
    import cv2

    rows, columns = crop_pixels(crop)
    seen = max(1, len(rows) * len(columns))
    count, _, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    if count < 2:
        return Outlined(share=0.0, box=None)
    largest = stats[1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))]
    left, top, width, height = (int(n) for n in largest[:4])
    return Outlined(share=float(mask.sum()) / seen, box=(left, top, left + width, top + height))


def draw_outline(
    pixels: NDArray[np.uint8], mask: NDArray[np.bool_], box: tuple[int, int, int, int] | None
) -> NDArray[np.uint8]:
    """A copy of the pixels (H, W, 3) with the mask's outline and the box."""
    import cv2

    drawn = pixels.copy()
    thin = _thin(pixels)
    outlines, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    for colour, width in ((_AROUND, 3 * thin), (_INSIDE, thin)):
        cv2.drawContours(drawn, outlines, -1, colour, width)
    return drawn if box is None else draw_box(drawn, box)


def draw_box(pixels: NDArray[np.uint8], box: tuple[int, int, int, int]) -> NDArray[np.uint8]:
    """A copy of the pixels (H, W, 3) with a box: left, top, right, bottom, the latter two behind its last pixels."""
    import cv2

    drawn = pixels.copy()
    thin = _thin(pixels)
    for colour, width in ((_AROUND, 3 * thin), (_INSIDE, thin)):
        cv2.rectangle(drawn, (box[0], box[1]), (box[2] - 1, box[3] - 1), colour, width)
    return drawn


def _thin(pixels: NDArray[np.uint8]) -> int:
    longest: int = max(pixels.shape[:2])
    return max(1, round(longest / 500))
