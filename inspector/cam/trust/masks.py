"""Where the thing is: a picture drawn by somebody, as the model's input sees it."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from inspector.cam.report import Crop
from inspector.errors import ExplainError


def mask_seen(drawn: Image.Image, crop: Crop, size: tuple[int, int]) -> Tensor:
    """(H, W) of bool at the model's input size, where the mask is brighter than half.

    drawn: of the picture's own size, upright. crop: the rectangle of the picture that the input shows. size: (height,
    width) of the input. Raises ExplainError when it is of another size, or marks nothing that the model saw.
    """
    if drawn.size != (crop.picture_width, crop.picture_height):
        raise ExplainError(
            f"The mask has {drawn.width} x {drawn.height} pixels, the picture {crop.picture_width} x "
            f"{crop.picture_height}.",
            hint="Draw it on the picture itself.",
        )
    height, width = size
    box = (crop.left, crop.top, crop.left + crop.width, crop.top + crop.height)
    seen = drawn.convert("L").transform((width, height), Image.Transform.EXTENT, box, Image.Resampling.BILINEAR)
    found = torch.from_numpy(np.array(seen) > 127)
    if not bool(found.any()):
        raise ExplainError("The mask marks nothing that the model saw.", hint="Bright is where the thing is.")
    return found
