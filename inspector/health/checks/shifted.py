"""Weights that do not lie around zero, as initialisers and training leave them: their mean is far away in deviations.

A layer of one sign only passes on the mean of what comes in and little else. The absolute values of normal weights have
a mean of 1.32 deviations, those of uniform ones 1.73.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import also, shown
from inspector.health.roles import Role
from inspector.health.subject import Subject

SHIFTED_WEIGHTS = FindingKind("shifted-weights", Severity.NOTICE, "Weights do not lie around zero")

_ROLES = (Role.CONV, Role.TRANSPOSED, Role.LINEAR, Role.RECURRENT)
# What few outputs weigh may well be of one sign: attention to the parts of a sum.
_LEAST_OUTPUTS = 4
# Quantised weights of one sign have a zero point elsewhere.
_FEW = 16


def _find(subject: Subject) -> Iterator[Finding]:
    limits = subject.thresholds
    found = []
    columns = subject.columns
    wide = (columns.numel >= limits.few) & columns.whole & (columns.distinct > _FEW)
    far = (columns.std > 0) & (np.abs(columns.mean) > limits.shifted * columns.std)
    for one, t in subject.those(subject.among(*_ROLES) & wide & far):
        if min(t.shape[:2]) >= _LEAST_OUTPUTS:
            found.append((abs(t.mean) / t.std, t.mean, t.std, one.name))
    if not found:
        return
    found.sort(key=lambda each: -each[0])
    ratio, mean, std, name = found[0]
    names = [each[-1] for each in found]
    yield SHIFTED_WEIGHTS.found(
        f"{shown(name)} has a mean of {mean:.3g}, {ratio:.3g} times its standard deviation of {std:.3g}{also(names)}.",
        subjects=names,
        evidence=(
            *(("mean", mean), ("std", std), ("ratio", ratio), ("tensors", len(names))),
            ("threshold", limits.shifted),
        ),
        remedy="Layers that are kept positive in training look so, and fixed averages. Otherwise something was added "
        "to the tensor, or its signs were lost (unsigned types, absolute values).",
    )


CHECK = Check(kinds=(SHIFTED_WEIGHTS,), find=_find)
