"""Units that a batch norm shifts so far below zero that a ReLU behind it hardly ever lets anything through."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.norms import batch_norms
from inspector.health.phrases import listed
from inspector.health.roles import Role
from inspector.health.subject import Subject
from inspector.units import human_share

SILENT = FindingKind("norm-shift-silences", Severity.NOTICE, "Batch norms push units below zero")


def _find(subject: Subject) -> Iterator[Finding]:
    times = subject.thresholds.norm_shift_times
    names: list[str] = []
    silent = channels = 0
    # Of the norms that are named: a few in each of many are no more than chance, and count all the same.
    here = 0
    for norm in batch_norms(subject):
        if norm.scale is None or norm.shift is None:
            continue
        channels += norm.channels
        # What comes out of the norm has the scale as its standard deviation and the shift as its mean.
        low = int(np.count_nonzero((norm.shift < 0) & (norm.shift < -times * np.abs(norm.scale))))
        silent += low
        if low > subject.thresholds.norm_shift_share * norm.channels:
            here += low
            names.append(norm.name_of(Role.NORM_SHIFT))
    if not names:
        return
    where = f"in {listed(names)}" if here == silent else f"{here:,} of them in {listed(names)}"
    fires = 0.5 * math.erfc(times / math.sqrt(2))
    yield SILENT.found(
        f"{silent:,} of {channels:,} channels of batch norms ({human_share(silent / channels)}) are shifted more than "
        f"{times:g} times their scale below zero, {where}.",
        subjects=names,
        evidence=(
            *(("channels", silent), ("of", channels), ("in those named", here)),
            *(("limit", -times), ("fires, if normal", fires)),
        ),
        remedy="With a ReLU next such a unit fires for fewer than 1 in 10,000 values, if they are normal; it could be "
        "pruned. It means nothing before another activation, or before a sum with a shortcut.",
    )


CHECK = Check(kinds=(SILENT,), find=_find)
