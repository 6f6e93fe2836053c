"""A run of checkpoints as one strip and as columns of the table."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PIL import Image

from inspector.cam.exporting.blend import Blend
from inspector.cam.report import Explanation
from inspector.checkpoint.training_place import Place
from inspector.render.explained_table import Row
from inspector.render.scores import share_text
from inspector.render.sheet import Cell, cell_of
from inspector.render.spreadsheet import Number

# Then the strip goes on below: wider pictures are too wide for most programs.
ACROSS = 12
COLUMNS = ("epoch", "step", "agreement_with_last")


def strip_cell(
    picture: Image.Image,
    shown: Explanation,
    *,
    name: str,
    place: Place,
    one_scale: bool,
    colour_map: str,
    opacity: float,
    blend: Blend = Blend.HEAT,
) -> Cell:
    """The map with all that tells it from its neighbours. shown: on the scale that it is drawn with."""
    lines = strip_lines(shown, name, place, one_scale=one_scale)
    return cell_of(picture, shown, lines, colour_map=colour_map, opacity=opacity, blend=blend)


def strip_lines(made: Explanation, name: str, place: Place, *, one_scale: bool) -> tuple[str, str, str, str]:
    """Name, place in the run, the class with its share, the raw range and the scale or what is wrong with the map."""
    target = made.target
    called = target.name or f"class {target.index}"
    scale = ", ".join(finding.id for finding in made.findings) or (
        "one scale for all" if one_scale else "its own scale"
    )
    return (
        name,
        place.says or "no epoch or step stated",
        f"{called} {share_text(target)}",
        f"{made.raw_minimum:.3g} to {made.raw_maximum:.3g} · {scale}",
    )


def strip_rows(cells: Sequence[Cell]) -> list[list[Cell]]:
    """In their order, a new row after every twelve."""
    return [list(cells[start : start + ACROSS]) for start in range(0, len(cells), ACROSS)]


def strip_columns(place: Place, agreement: float) -> Row:
    """What stands behind a map's usual columns; "" for what is not stated or does not exist."""
    stated = ["" if value is None else Number(f"{value:.12g}") for value in (place.epoch, place.step)]
    return (*stated, "" if math.isnan(agreement) else Number(f"{agreement:.6f}"))
