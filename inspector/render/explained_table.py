"""Heat maps as a table for spreadsheets and other programs: a row for each map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inspector.cam.layers.layouts import layer_name
from inspector.cam.report import Explanation
from inspector.render.outline import outline_of
from inspector.render.spreadsheet import Number, csv_text

COLUMNS = (
    "checkpoint", "picture", "method", "layer", "asked", "answer", "class", "name", "logit", "probability",
    "raw_minimum", "raw_maximum", "negative_share", "centre_x", "centre_y",
    "box_left", "box_top", "box_right", "box_bottom", "share_above", "findings", "error",
)  # fmt: skip
ERROR = COLUMNS.index("error")
Row = tuple[str, ...]


def row_of(explanation: Explanation, *, checkpoint: str, picture: str, threshold: float) -> Row:
    """Places are in pixels of the upright picture; they are empty where nothing is hot. A plain number has no
    probability."""
    one = explanation
    centre = centre_of_heat(one)
    outlined = outline_of(one.heat, one.crop, threshold)
    numbers = [one.target.logit, one.target.probability, one.raw_minimum, one.raw_maximum, one.negative_share]
    return (
        checkpoint,
        picture,
        one.method,
        layer_name(one.layer),
        one.asked,
        one.answer.value,
        Number(one.target.index),
        one.target.name or "",
        *("" if number is None else Number(f"{number:.7g}") for number in numbers),
        *(("", "") if centre is None else (Number(f"{place:.2f}") for place in centre)),
        *(("",) * 4 if outlined.box is None else (Number(edge) for edge in outlined.box)),
        Number(f"{outlined.share:.6f}"),
        " ".join(finding.id for finding in one.findings),
        "",
    )


def row_of_error(says: str, *, checkpoint: str, picture: str) -> Row:
    """A picture or checkpoint that gave no map."""
    return (checkpoint, picture, *("",) * (len(COLUMNS) - 3), says)


def table_csv(rows: Sequence[Row], more: Sequence[str] = ()) -> str:
    """With a heading, lines ended as RFC 4180 has them. more: names of what stands behind the usual columns."""
    return csv_text((*COLUMNS, *more), rows, ending="\r\n")


def centre_of_heat(explanation: Explanation) -> tuple[float, float] | None:
    """(x, y) of the heat's centre of mass in pixels of the upright picture, None without heat."""
    heat = explanation.heat.astype(np.float64)
    total = float(heat.sum())
    if not total > 0:
        return None
    height, width = heat.shape
    x = float(heat.sum(axis=0) @ (np.arange(width) + 0.5)) / total / width
    y = float(heat.sum(axis=1) @ (np.arange(height) + 0.5)) / total / height
    crop = explanation.crop
    return crop.left + x * crop.width, crop.top + y * crop.height
