"""Many heat maps on one sheet: a row for each picture, a column for each thing that was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from inspector.cam.exporting.blend import OPACITY, Blend
from inspector.cam.inputs.picture import upright
from inspector.cam.report import Explanation
from inspector.render.overlay import overlay
from inspector.render.visible import visible

SIDE = 224
_GAP, _LINE = 8, 18
_PAPER, _INK = (255, 255, 255), (32, 32, 32)
# Beyond this a sheet is larger than most programs open.
MOST_CELLS = 2000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cell:
    """pixels: (h, w, 3), at most SIDE on either side; None for an empty place. lines: its captions."""

    pixels: NDArray[np.uint8] | None
    lines: tuple[str, ...] = ()


def cell_of(
    picture: Image.Image,
    explanation: Explanation | None,
    lines: Sequence[str],
    *,
    colour_map: str = "viridis",
    opacity: float = OPACITY,
    blend: Blend = Blend.HEAT,
) -> Cell:
    """The overlay, shrunk to a cell; the picture itself where there is no explanation."""
    pixels = (
        np.array(upright(picture))
        if explanation is None
        else overlay(picture, explanation, colour_map=colour_map, opacity=opacity, blend=blend)
    )
    shown = Image.fromarray(pixels)
    shown.thumbnail((SIDE, SIDE), Image.Resampling.BILINEAR)
    return Cell(pixels=np.array(shown), lines=tuple(lines))


def findings_line(explanation: Explanation) -> tuple[str, ...]:
    """The line of a caption that says what is wrong with the map, where something is."""
    return (", ".join(finding.id for finding in explanation.findings),) if explanation.findings else ()


def sheet(rows: Sequence[Sequence[Cell]]) -> NDArray[np.uint8]:
    """(H, W, 3) uint8; rows may have different lengths."""
    columns = max((len(row) for row in rows), default=0)
    below = max((len(cell.lines) for row in rows for cell in row), default=0)
    high = SIDE + max(2, below) * _LINE + _GAP
    paper = Image.new("RGB", (columns * (SIDE + _GAP) + _GAP, len(rows) * high + _GAP), _PAPER)
    pen = ImageDraw.Draw(paper)
    font = ImageFont.load_default(12)
    for down, row in enumerate(rows):
        for across, cell in enumerate(row):
            left, top = _GAP + across * (SIDE + _GAP), _GAP + down * high
            if cell.pixels is not None:
                shown = Image.fromarray(cell.pixels)
                paper.paste(shown, (left + (SIDE - shown.width) // 2, top + (SIDE - shown.height) // 2))
            for number, line in enumerate(cell.lines):
                pen.text((left, top + SIDE + 2 + number * _LINE), _fitting(line, pen, font), fill=_INK, font=font)
    return np.array(paper)


def _fitting(line: str, pen: ImageDraw.ImageDraw, font: ImageFont.FreeTypeFont | ImageFont.ImageFont) -> str:
    text = visible(line)[:120]
    if pen.textlength(text, font=font) <= SIDE:
        return text
    while text and pen.textlength(text + "…", font=font) > SIDE:
        text = text[:-1]
    return text + "…"
