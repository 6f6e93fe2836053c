"""A visitor's picture: decoded here and nowhere else."""

from __future__ import annotations

import numpy as np
from PIL import Image

from inspector.cam.inputs.picture import full_size, open_picture
from inspector.cam.report import Explanation
from inspector.errors import ReadError
from inspector.jobs.bench import Bench
from inspector.jobs.subjects import Drawn, PictureRef
from inspector.render.overlay import overlay, png_bytes
from inspector.render.screen import at_screen_size


def decoded(bench: Bench, picture: PictureRef) -> Image.Image:
    """Its pixels, as they are stored. Raises ExplainError for what is no picture."""

    def read() -> Image.Image:
        if not picture.path.is_file():
            raise ReadError(f"{picture.name} is not on the server any more.", hint="Choose it again.")
        return open_picture(picture.path)

    return bench.keep(("picture", picture.sha256), read, nbytes=lambda found: 4 * found.width * found.height)


def drawn(bench: Bench, picture: PictureRef) -> Drawn:
    """The picture for a page."""
    found = decoded(bench, picture)
    return Drawn(size=full_size(found), pixels=np.asarray(at_screen_size(found)))


def overlay_png(bench: Bench, picture: PictureRef, made: Explanation, colour_map: str, opacity: float) -> bytes:
    """The map over every pixel of the original, as a file."""
    return png_bytes(overlay(decoded(bench, picture), made, colour_map=colour_map, opacity=opacity))
