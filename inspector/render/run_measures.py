"""What is shown of a run's layers over time: one entry each, which pages and figures take."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from inspector.run.groups import Group, distance_from_first, distance_from_last, series_of
from inspector.run.report import Measure, RunReport
from inspector.units import human_distance, human_share


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerMeasure:
    """One number of a group at each member.

    id: as it stands in the address. says: what it is, in a sentence. values: (members,), NaN where it is not known.
    text: one value for people. logarithmic: whether it differs by orders of magnitude. zero: what 0 means there.
    """

    id: str
    title: str
    says: str
    values: Callable[[RunReport, Group], NDArray[np.float64]]
    text: Callable[[float], str]
    logarithmic: bool = False
    zero: str = "0"


def _series(measure: Measure) -> Callable[[RunReport, Group], NDArray[np.float64]]:
    return partial(_series_of, measure)


def _series_of(measure: Measure, report: RunReport, group: Group) -> NDArray[np.float64]:
    return series_of(report, group, measure)


def number_text(value: float) -> str:
    """Four digits; "" for what is not known."""
    return "" if math.isnan(value) else f"{value:.4g}"


def count_text(value: float) -> str:
    """A whole number."""
    return "" if math.isnan(value) else f"{int(value):,}"


def share_text(value: float) -> str:
    """A share in percent."""
    return "" if math.isnan(value) else human_share(value)


UPDATE = LayerMeasure(
    id="update",
    title="Update",
    says="Relative L2 from the checkpoint before: |now - before| / |before|.",
    values=_series(Measure.UPDATE),
    text=human_distance,
    logarithmic=True,
    zero="did not move",
)
#: In the order in which they are offered.
LAYER_MEASURES = (
    UPDATE,
    LayerMeasure(
        id="rms",
        title="RMS",
        says="Root mean square of its finite numbers: how large its weights are.",
        values=_series(Measure.RMS),
        text=number_text,
        logarithmic=True,
        zero="all zeros",
    ),
    LayerMeasure(
        id="first",
        title="From first",
        says="Relative L2 from the first checkpoint: |now - first| / |first|.",
        values=distance_from_first,
        text=human_distance,
    ),
    LayerMeasure(
        id="last",
        title="From last",
        says="Relative L2 from the last checkpoint: |now - last| / |last|.",
        values=distance_from_last,
        text=human_distance,
    ),
    LayerMeasure(
        id="signs",
        title="Sign flips",
        says="Share of its numbers with another sign than in the checkpoint before.",
        values=_series(Measure.FLIPS),
        text=share_text,
    ),
    LayerMeasure(
        id="zero-rows",
        title="Zero rows",
        says="Rows along the first axis that are nothing but zeros: filters, of a convolution.",
        values=_series(Measure.ZERO_ROWS),
        text=count_text,
    ),
)
