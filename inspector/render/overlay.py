"""The heat over the picture that somebody brought, at its own size, where the model really looked."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from inspector.cam.exporting.blend import OPACITY, Blend
from inspector.cam.inputs.orientation import full_size, upright_array
from inspector.cam.inputs.reduced import crop_in_pixels
from inspector.cam.report import Crop, Explanation
from inspector.errors import UsageError
from inspector.render.colour_maps import coloured

# Rows blended at a time, so that a 50-megapixel picture needs megabytes beside itself and not gigabytes.
_ROWS = 256


def overlay(
    picture: Image.Image,
    explanation: Explanation,
    *,
    colour_map: str = "viridis",
    opacity: float = OPACITY,
    blend: Blend = Blend.HEAT,
    dim_outside: float = 0.0,
) -> NDArray[np.uint8]:
    """(H, W, 3) uint8 at the size of the upright picture, as far as it was read (`ReducedPicture`).

    Inside the crop every pixel is (1 - a) x picture + a x colour with a = opacity x heat, so that a place without heat
    is exactly the picture; with Blend.UNIFORM a = opacity everywhere. Outside, where the model saw nothing, the picture
    stays as it is, or is darkened by the share `dim_outside`.
    Raises UsageError when the picture is not the explained one's size, a share is not in 0..1, or there is no such
    blend.
    """
    return lay_over(
        picture,
        explanation.heat,
        explanation.crop,
        lambda heat: coloured(heat, colour_map),
        opacity=opacity,
        blend=blend,
        dim_outside=dim_outside,
    )


def lay_over(
    picture: Image.Image,
    field: NDArray[np.float32],
    crop: Crop,
    colour: Callable[[NDArray[np.float32]], NDArray[np.uint8]],
    *,
    opacity: float = OPACITY,
    blend: Blend = Blend.HEAT,
    dim_outside: float = 0.0,
) -> NDArray[np.uint8]:
    """(H, W, 3) uint8: any field of numbers (h, w) over the crop that it covers. colour: (rows, columns) of the field
    at the picture's pixels to (rows, columns, 3). The heat of a signed field is its magnitude. Otherwise `overlay`."""
    for name, share in (("opacity", opacity), ("dim_outside", dim_outside)):
        if not 0.0 <= share <= 1.0:
            raise UsageError(f"{name} is {share}; a share from 0 to 1 is needed.")
    try:
        by_heat = Blend(blend) is Blend.HEAT
    except ValueError:
        raise UsageError(f"There is no blend {blend!r}.", hint=f"Blends: {', '.join(Blend)}.") from None
    ground = upright_array(picture)
    explained = (crop.picture_width, crop.picture_height)
    if explained not in (full_size(picture), ground.shape[1::-1]):
        wide, high = full_size(picture)
        raise UsageError(
            f"The picture has {wide} x {high} pixels, the explained one {crop.picture_width} x {crop.picture_height}.",
            hint="Give the picture that was explained.",
        )
    crop = crop_in_pixels(crop, picture)
    result = ground
    if dim_outside:
        result = np.empty_like(ground)
        for first in range(0, len(ground), _ROWS):
            dimmed = ground[first : first + _ROWS] * np.float32(1.0 - dim_outside)
            result[first : first + _ROWS] = np.rint(dimmed).astype(np.uint8)
    rows, columns = crop_pixels(crop)
    if rows.stop <= rows.start or columns.stop <= columns.start:
        return result
    across = resample(field, columns, crop.left, crop.width, axis=1)
    for first in range(rows.start, rows.stop, _ROWS):
        some = range(first, min(first + _ROWS, rows.stop))
        heat = resample(across, some, crop.top, crop.height, axis=0)
        colours = colour(heat).astype(np.float32)
        place = np.s_[some.start : some.stop, columns.start : columns.stop]
        strength = np.float32(opacity) * (_magnitude(heat) if by_heat else np.float32(1.0))
        blended = ground[place] * (np.float32(1.0) - strength) + colours * strength
        result[place] = np.rint(blended).astype(np.uint8)
    return result


def _magnitude(heat: NDArray[np.float32]) -> NDArray[np.float32]:
    """(rows, columns, 1), 0..1; what is no number has none."""
    size: NDArray[np.float32] = np.clip(np.abs(np.nan_to_num(heat, nan=0.0)), 0.0, 1.0)
    return size[..., None]


def heat_picture(explanation: Explanation, *, colour_map: str = "viridis") -> NDArray[np.uint8]:
    """(H, W, 3) uint8: the heat alone, at the model's input size."""
    return coloured(explanation.heat, colour_map)


def png_bytes(pixels: NDArray[np.uint8]) -> bytes:
    """The pixels (H, W, 3) as a PNG file without metadata, so that equal pixels make equal bytes."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return buffer.getvalue()


def crop_pixels(crop: Crop) -> tuple[range, range]:
    """(rows, columns) of the original picture whose pixel centres lie inside the crop."""
    return (
        _centres_inside(crop.top, crop.height, crop.picture_height),
        _centres_inside(crop.left, crop.width, crop.picture_width),
    )


def resample(
    heat: NDArray[np.float32], pixels: range, start: float, length: float, *, axis: int
) -> NDArray[np.float32]:
    """Heat along one axis at the centres of original pixels, linear between the model's pixels, edges held.

    The model's n pixels along the axis cover the original's [start, start + length].
    """
    cells = heat.shape[axis]
    places = (np.arange(pixels.start, pixels.stop) + 0.5 - start) * (cells / length) - 0.5
    places = np.clip(places, 0, cells - 1)
    below = np.floor(places).astype(np.intp)
    above = np.minimum(below + 1, cells - 1)
    share = (places - below).astype(np.float32)
    share = share[:, None] if axis == 0 else share[None, :]
    mixed: NDArray[np.float32] = np.take(heat, below, axis) * (1 - share) + np.take(heat, above, axis) * share
    return mixed


def _centres_inside(start: float, length: float, size: int) -> range:
    first = int(np.ceil(start - 0.5))
    behind = int(np.ceil(start + length - 0.5))
    return range(max(first, 0), min(max(behind, 0), size))
