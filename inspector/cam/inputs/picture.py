"""A picture as people see it, and which rectangle of it the model sees. No torch here: overlays need it too."""

from __future__ import annotations

import struct
import warnings
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from PIL import Image, UnidentifiedImageError

from inspector.cam.inputs.large import MOST_PIXELS, MOST_WHOLE_PIXELS, read_large, size_of
from inspector.cam.inputs.orientation import full_size, upright
from inspector.cam.report import Crop, Preprocessing
from inspector.errors import ExplainError
from inspector.side_files import open_file

__all__ = [
    "crop_box",
    "full_size",
    "input_shape",
    "open_picture",
    "scaled_size",
    "seen_crop",
    "upright",
]

# Uncompressed, of four channels of 16 bits.
MOST_NBYTES = 8 * MOST_PIXELS


def open_picture(where: Path | bytes) -> Image.Image:
    """The first frame of a picture file, decoded; a `ReducedPicture` above 26 megapixels.

    Raises ExplainError for what is no picture, cut short, larger than 250 megapixels, or of a kind that cannot be
    scaled while it is decoded and would take more than 240 MB; ReadError for what is no file.
    """
    with ExitStack() as opened:
        file = BytesIO(where) if isinstance(where, bytes) else opened.enter_context(open_file(where, MOST_NBYTES))
        try:
            with warnings.catch_warnings():
                # Pillow only warns at its own limit; ours is an error.
                warnings.simplefilter("ignore", Image.DecompressionBombWarning)
                return _decoded(file)
        except UnidentifiedImageError as error:
            raise ExplainError(
                "This is not a picture that can be read.", hint="Use PNG, JPEG, WebP or TIFF."
            ) from error
        except Image.DecompressionBombError as error:
            raise _too_large(f"more than {2 * (Image.MAX_IMAGE_PIXELS or 0):,}") from error
        except (OSError, SyntaxError, ValueError, EOFError) as error:
            says = f"The picture cannot be read: {str(error).rstrip('.')}."
            raise ExplainError(says, hint="Save it again as PNG or JPEG.") from error


def _decoded(file: BinaryIO) -> Image.Image:
    try:
        size = size_of(file)
    except (SyntaxError, IndexError, TypeError, struct.error) as error:
        # What Image.open makes of its formats' errors.
        raise UnidentifiedImageError from error
    width, height = size
    if width * height > MOST_PIXELS:
        raise _too_large(f"{width} x {height}")
    if width * height > MOST_WHOLE_PIXELS:
        return read_large(file, size)
    file.seek(0)
    picture = Image.open(BytesIO(file.read()))
    picture.load()
    return picture


def scaled_size(width: int, height: int, resize: int | tuple[int, int] | None) -> tuple[int, int]:
    """(width, height) after the resize step. An int is the shorter side; the longer one is cut to whole pixels."""
    if resize is None:
        return width, height
    if isinstance(resize, tuple):
        return resize[1], resize[0]
    if width <= height:
        return resize, max(1, int(resize * height / width))
    return max(1, int(resize * width / height)), resize


def crop_box(width: int, height: int, crop: tuple[int, int] | None) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) of the centre crop in a picture of this size; beyond its edges where it is smaller.

    As torchvision's CenterCrop rounds: missing pixels are split with the odd one behind, present ones with Python's
    rounding to even.
    """
    if crop is None:
        return 0, 0, width, height
    high, wide = crop
    left = -((wide - width) // 2) if wide > width else round((width - wide) / 2)
    top = -((high - height) // 2) if high > height else round((height - high) / 2)
    return left, top, left + wide, top + high


def input_shape(preprocessing: Preprocessing, picture_size: tuple[int, int] = (224, 224)) -> tuple[int, int, int]:
    """(C, H, W) of the model's input for an upright picture of (width, height); a square one where none is at hand."""
    left, top, right, bottom = crop_box(*scaled_size(*picture_size, preprocessing.resize), preprocessing.crop)
    return preprocessing.channels, bottom - top, right - left


def seen_crop(picture_size: tuple[int, int], preprocessing: Preprocessing) -> Crop:
    """Which rectangle of the upright picture the model sees. picture_size: (width, height)."""
    width, height = picture_size
    scaled_width, scaled_height = scaled_size(width, height, preprocessing.resize)
    left, top, right, bottom = crop_box(scaled_width, scaled_height, preprocessing.crop)
    across, down = width / scaled_width, height / scaled_height
    return Crop(
        left=left * across,
        top=top * down,
        width=(right - left) * across,
        height=(bottom - top) * down,
        picture_width=width,
        picture_height=height,
    )


def _too_large(size: str) -> ExplainError:
    return ExplainError(
        f"The picture has {size} pixels; at most {MOST_PIXELS // 1_000_000} million are read.",
        hint="Scale it down first.",
    )
