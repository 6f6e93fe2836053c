"""A picture as people see it, and which rectangle of it the model sees. No torch here: overlays need it too."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from inspector.cam.report import Crop, Preprocessing
from inspector.errors import ExplainError
from inspector.side_files import read_bytes

# A 100-megapixel picture needs 300 MB as RGB; cameras end below it.
MOST_PIXELS = 100_000_000
# Uncompressed, of four channels of 16 bits.
MOST_NBYTES = 8 * MOST_PIXELS


def open_picture(where: Path | bytes) -> Image.Image:
    """The first frame of a picture file, decoded.

    Raises ExplainError for what is no picture, cut short, or larger than 100 megapixels; ReadError for what is no file.
    """
    data = where if isinstance(where, bytes) else read_bytes(where, most_nbytes=MOST_NBYTES)
    try:
        with warnings.catch_warnings():
            # Pillow only warns at its own limit; ours is an error.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(data))
            width, height = picture.size
            if width * height > MOST_PIXELS:
                raise _too_large(f"{width} x {height}")
            picture.load()
    except UnidentifiedImageError as error:
        raise ExplainError("This is not a picture that can be read.", hint="Use PNG, JPEG, WebP or TIFF.") from error
    except Image.DecompressionBombError as error:
        raise _too_large(f"more than {2 * (Image.MAX_IMAGE_PIXELS or 0):,}") from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        says = f"The picture cannot be read: {str(error).rstrip('.')}."
        raise ExplainError(says, hint="Save it again as PNG or JPEG.") from error
    return picture


def upright(picture: Image.Image) -> Image.Image:
    """The picture as a viewer shows it, mode RGB: turned by its EXIF orientation, transparency over white, 8 bits.

    16-bit greys keep their upper 8 bits' worth (rounded); 32-bit greys are scaled from 0..1, 0..255 or 0..65535,
    whichever is the smallest range that holds them.
    """
    turned = ImageOps.exif_transpose(picture)
    if turned.mode.startswith("I") or turned.mode == "F":
        return Image.fromarray(_eight_bits(turned), mode="L").convert("RGB")
    if turned.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in turned.info:
        clear = turned.convert("RGBA")
        ground = Image.new("RGBA", clear.size, (255, 255, 255, 255))
        return Image.alpha_composite(ground, clear).convert("RGB")
    return turned.convert("RGB")


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


def _eight_bits(picture: Image.Image) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    values = np.nan_to_num(np.asarray(picture, dtype=np.float64))
    top = float(values.max(initial=0.0))
    if picture.mode.startswith("I;16"):
        full = 65535.0
    elif picture.mode == "F" and top <= 1.0:
        full = 1.0
    else:
        full = 255.0 if top <= 255.0 else 65535.0
    return np.clip(np.round(values * (255.0 / full)), 0, 255).astype(np.uint8)
