"""Colour maps as tables of 256 colours, from OpenCV's own.

Viridis, cividis, inferno and magma rise evenly in lightness, so that an even step in heat looks like one, also in
grey and (cividis most of all) to colour-blind eyes. Turbo and jet do not; jet is here for comparing with other tools.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from inspector.errors import UsageError

# Steps of blue and orange from ColorBrewer (Apache 2.0), which colour-blind eyes tell apart, even in
# lightness towards the white in the middle: -1, ..., 0, ..., 1.
_DIVERGING = (
    (8, 48, 107), (33, 113, 181), (107, 174, 214), (198, 219, 239), (247, 247, 247),
    (253, 208, 162), (253, 141, 60), (217, 72, 1), (127, 39, 4),
)  # fmt: skip

COLOUR_MAPS: tuple[str, ...] = ("viridis", "cividis", "inferno", "magma", "turbo", "jet")


@cache
def colour_table(name: str) -> NDArray[np.uint8]:
    """(256, 3) RGB, read-only; row 0 is no heat. Raises UsageError naming the choices."""
    if name not in COLOUR_MAPS:
        raise UsageError(f"There is no colour map {name!r}.", hint=f"Colour maps: {', '.join(COLOUR_MAPS)}.")
    import cv2

    ramp = np.arange(256, dtype=np.uint8)[:, None]
    blue_green_red = cv2.applyColorMap(ramp, getattr(cv2, f"COLORMAP_{name.upper()}"))
    table: NDArray[np.uint8] = np.ascontiguousarray(blue_green_red[:, 0, ::-1], dtype=np.uint8)
    table.flags.writeable = False
    return table


def coloured(values: NDArray[np.floating], name: str) -> NDArray[np.uint8]:
    """Values in [0, 1], any shape, to colours with a last axis of 3: the nearest of 256 steps, clipped, NaN as 0."""
    steps = np.rint(np.clip(np.nan_to_num(values, nan=0.0), 0.0, 1.0) * 255).astype(np.intp)
    colours: NDArray[np.uint8] = colour_table(name)[steps]
    return colours


@cache
def diverging_table() -> NDArray[np.uint8]:
    """(257, 3) RGB, read-only, blue over white to orange; row 128 is 0."""
    steps = np.linspace(0, len(_DIVERGING) - 1, 257)
    anchors = np.asarray(_DIVERGING, dtype=np.float64)
    channels = [np.interp(steps, np.arange(len(_DIVERGING)), anchors[:, channel]) for channel in range(3)]
    table: NDArray[np.uint8] = np.rint(np.stack(channels, axis=1)).astype(np.uint8)
    table.flags.writeable = False
    return table


def signed_colours(values: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Values in [-1, 1], any shape, to colours with a last axis of 3: blue below 0, white at 0 and for NaN."""
    steps = np.rint(np.clip(np.nan_to_num(values, nan=0.0), -1.0, 1.0) * 128).astype(np.intp) + 128
    colours: NDArray[np.uint8] = diverging_table()[steps]
    return colours
