"""Where the thing is: a picture drawn by somebody, as the model's input sees it."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from inspector.cam.inputs.orientation import full_size
from inspector.cam.inputs.reduced import crop_in_pixels
from inspector.cam.report import Crop
from inspector.errors import ExplainError


def mask_seen(drawn: Image.Image, crop: Crop, size: tuple[int, int]) -> Tensor:
    """(H, W) of bool at the model's input size, where the mask is brighter than half.

    drawn: of the picture's own size, upright. crop: the rectangle of the picture that the input shows. size: (height,
    width) of the input. Raises ExplainError when it is of another size, or marks nothing that the model saw.
    """
    wide, high = full_size(drawn)
    if (wide, high) != (crop.picture_width, crop.picture_height):
        raise ExplainError(
            f"The mask has {wide} x {high} pixels, the picture {crop.picture_width} x {crop.picture_height}.",
            hint="Draw it on the picture itself.",
        )
    height, width = size
    crop = crop_in_pixels(crop, drawn)
    box = (crop.left, crop.top, crop.left + crop.width, crop.top + crop.height)
    seen = drawn.convert("L").transform((width, height), Image.Transform.EXTENT, box, Image.Resampling.BILINEAR)
    found = torch.from_numpy(np.array(seen) > 127)
    if not bool(found.any()):
        raise ExplainError("The mask marks nothing that the model saw.", hint="Bright is where the thing is.")
    return found
