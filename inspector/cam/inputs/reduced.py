"""A picture of which only every second, fourth or eighth pixel's worth was read, and which knows how large it is."""

from __future__ import annotations

from PIL import Image

from inspector.cam.report import Crop


class ReducedPicture(Image.Image):
    """The upright pixels of a large picture at a coarser scale, mode RGB.

    full_size: (width, height) of the upright picture in its file's pixels. box: (left, top, right, bottom) in the
    pixels that were read, of where all of it lies: a last column that stands for fewer pixels than the others reaches
    beyond the picture's edge. What Pillow makes of it (a copy, a part) is an ordinary picture without these.
    """

    def __init__(
        self, pixels: Image.Image, *, full_size: tuple[int, int], box: tuple[float, float, float, float]
    ) -> None:
        super().__init__()
        self.im = pixels.im
        self._mode = pixels.mode
        self._size = pixels.size
        self.info = {name: value for name, value in pixels.info.items() if name == "icc_profile"}
        self.full_size = full_size
        self.box = box


def crop_in_pixels(crop: Crop, picture: Image.Image) -> Crop:
    """The same rectangle in the pixels that were read of the picture; the crop itself where all were.

    A crop says of which picture it is by that one's size: the file's, or what was read of it.
    """
    if not isinstance(picture, ReducedPicture) or (crop.picture_width, crop.picture_height) == picture.size:
        return crop
    left, top, right, bottom = picture.box
    across, down = (right - left) / picture.full_size[0], (bottom - top) / picture.full_size[1]
    return Crop(
        left=left + crop.left * across,
        top=top + crop.top * down,
        width=crop.width * across,
        height=crop.height * down,
        picture_width=picture.width,
        picture_height=picture.height,
    )
