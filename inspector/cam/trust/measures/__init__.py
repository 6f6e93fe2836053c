"""The measures of trust, in the order in which they are shown; the quick ones first."""

from __future__ import annotations

from inspector.cam.trust.measure import Measure
from inspector.cam.trust.measures import drop, perturbation, road, sensitivity

MEASURES: tuple[Measure, ...] = (
    drop.DROP,
    drop.INCREASE,
    perturbation.DELETION,
    perturbation.INSERTION,
    road.MEASURE,
    sensitivity.MEASURE,
)
