"""Sensitivity: how much the map changes when the picture changes too little to see.

Source: Yeh and others, "On the (In)fidelity and Sensitivity of Explanations", NeurIPS 2019 (arXiv 1901.09392),
definition 2: the largest change, relative to the map, over random changes within a radius.
"""

from __future__ import annotations

import math

from inspector.cam.trust.measure import Case, Measure, Measured

TRIES = 8
# Of the picture's range.
RADIUS = 0.02


def sensitivity(case: Case) -> Measured:
    """max ||map of the changed picture - map|| / ||map||.

    NaN for a map that is 0 everywhere, and for a picture of one value, which has no range.
    """
    assert case.remap is not None
    picture = case.scene.batch
    span = float(picture.max() - picture.min())
    size = float(case.heat.double().norm())
    if not (size > 0 and span > 0):
        return Measured(value=math.nan)
    largest = 0.0
    for number in range(TRIES):
        case.scene.progress(number, TRIES, "changing the picture a little")
        noise = case.scene.noise(number).clamp(-1, 1)
        other = case.remap(picture + RADIUS * span * noise)
        largest = max(largest, float((other.double() - case.heat.double()).norm()))
    return Measured(value=largest / size)


MEASURE = Measure(
    id="sensitivity",
    title="Sensitivity",
    paper="Yeh 2019, arXiv 1901.09392",
    says="The largest change of the map when the picture changes too little to see.",
    higher=False,
    compute=sensitivity,
    maps=TRIES,
)
