"""Pictures and maps no larger than a screen, and as thumbnails. Files are made from the originals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PIL import Image

from inspector.cam.inputs.picture import full_size, upright
from inspector.cam.inputs.reduced import ReducedPicture
from inspector.cam.report import Explanation
from inspector.render.overlay import overlay

LONGEST = 1400
THUMBNAIL = 112


def at_screen_size(picture: Image.Image, longest: int = LONGEST) -> Image.Image:
    """The upright picture, its longer side at most so many pixels."""
    shown, size = upright(picture), full_size(picture)
    largest = max(size)
    if largest <= longest:
        return shown
    width, height = (max(1, round(side * longest / largest)) for side in size)
    # What was read of a large picture may end a little behind its edge.
    box = shown.box if isinstance(shown, ReducedPicture) else None
    return shown.resize((width, height), Image.Resampling.BILINEAR, box, reducing_gap=2.0)


def scaled_to(size: tuple[int, int], made: Explanation) -> Explanation:
    """The same map for the picture at another (width, height), which shows all of it."""
    crop, place = made.crop, made.place
    across, down = size[0] / crop.picture_width, size[1] / crop.picture_height
    scaled = replace(
        crop,
        left=crop.left * across,
        top=crop.top * down,
        width=crop.width * across,
        height=crop.height * down,
        picture_width=size[0],
        picture_height=size[1],
    )
    if place is not None:
        place = (place[0] * across, place[1] * down, place[2] * across, place[3] * down)
    return replace(made, crop=scaled, place=place)


def thumbnail(picture: Image.Image, made: Explanation, colour_map: str) -> Image.Image:
    """The overlay of what the model saw. picture: no larger than a few thumbnails, and shows all of it."""
    scaled = scaled_to(picture.size, made)
    drawn = Image.fromarray(overlay(picture, scaled, colour_map=colour_map))
    return cropped(drawn, scaled)


def cropped(drawn: Image.Image, made: Explanation, side: int = THUMBNAIL) -> Image.Image:
    """The model's own part of a picture, its longer side so many pixels."""
    crop = made.crop
    box = (crop.left, crop.top, crop.left + crop.width, crop.top + crop.height)
    shape = np.array([crop.width, crop.height]) * side / max(crop.width, crop.height)
    width, height = (max(1, round(n)) for n in shape)
    left, top, right, bottom = map(round, box)
    return drawn.crop((left, top, right, bottom)).resize((width, height), Image.Resampling.LANCZOS)
