"""On inputs of what scale the first batch norm was measured, by the convolution before it.

Of inputs with deviation s, independent of each other, the filter w makes values of variance s^2 sum(w^2); neighbours
that are alike make it more, by at most the number of weights of a filter.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.norms import BatchNorm, batch_norms
from inspector.health.roles import Role
from inspector.health.subject import Examined, Subject

INPUT_SCALE = FindingKind(
    "norm-input-scale", Severity.NOTICE, "The first batch norm was measured on inputs of a large scale"
)
# Channels of pictures and sound: a convolution of more is not the first that runs.
_MOST_CHANNELS = 4
_LEAST_FILTERS = 8


def _find(subject: Subject) -> Iterator[Finding]:
    if subject.state is not None and not subject.state.ordered:
        return
    pairs = list(_pairs(subject))
    first = next((one for one, _ in subject.measured(Role.CONV, Role.DEPTHWISE)), None)
    if len(pairs) < 2 or pairs[0][0] is not first or first.tensor.shape[1] > _MOST_CHANNELS:
        return
    scale = _scale(subject, *pairs[0])
    later = [found for pair in pairs[1:] if (found := _scale(subject, *pair)) is not None]
    limits = subject.thresholds
    if scale is None or not later:
        return
    usual = float(np.median(later))
    if scale <= limits.norm_input or usual * limits.norm_input_ratio >= scale:
        return
    norm = pairs[0][1]
    name = norm.name_of(Role.RUNNING_VAR)
    yield INPUT_SCALE.found(
        f"{name} fits inputs with a deviation of about {scale:.3g} before {first.name}; for the later batch norms it "
        f"is {usual:.2g}.",
        subjects=(name,),
        evidence=(
            *(("deviation", scale), ("later norms", usual), ("norms", len(pairs))),
            *(("threshold", limits.norm_input), ("threshold_ratio", limits.norm_input_ratio)),
        ),
        remedy="Pictures of 0 to 255 look like this: give it such pictures now, too. Where it was trained on "
        "normalised ones, its statistics were measured on others: measure them anew on training data.",
    )


def _pairs(subject: Subject) -> Iterator[tuple[Examined, BatchNorm]]:
    """Each batch norm with the convolution just before it, of as many outputs."""
    norms = {norm.module: norm for norm in batch_norms(subject) if not norm.stats_default}
    before: Examined | None = None
    for one in subject.tensors:
        if one.role in (Role.CONV, Role.DEPTHWISE) and not one.last.endswith("kernel"):
            before = one
        elif before is not None and one.role is Role.RUNNING_VAR and one.module in norms:
            if before.tensor.shape[0] == norms[one.module].channels:
                yield before, norms[one.module]
            before = None


def _scale(subject: Subject, conv: Examined, norm: BatchNorm) -> float | None:
    """The deviation of the inputs, of the median filter."""
    array = subject.array(conv)
    if array is None or norm.channels < _LEAST_FILTERS:
        return None
    power = np.square(array.reshape(norm.channels, -1)).sum(axis=1)
    alive = (power > 0) & np.isfinite(power) & (norm.var > 0)
    if alive.sum() < _LEAST_FILTERS:
        return None
    return float(np.sqrt(np.median(norm.var[alive] / power[alive])))


CHECK = Check(kinds=(INPUT_SCALE,), find=_find)
