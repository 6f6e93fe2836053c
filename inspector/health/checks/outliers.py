"""Single weights and channels far larger than the rest: what makes a tensor hard to quantise.

Sources: LLM.int8 (arXiv:2208.07339), SmoothQuant (2211.10438), super weights (2411.07191). A symmetric 8-bit grid over
[-a, a] has steps of a / 127, so rounding costs a / (127 sqrt(12)) in root mean square.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import also, shown
from inspector.health.roles import Role
from inspector.health.screens import screens_of
from inspector.health.subject import Subject
from inspector.units import human_share
from inspector.weights.medians import median
from inspector.weights.report import TensorStatistics
from inspector.weights.rows import row_largest

OUTLIER_CHANNELS = FindingKind("outlier-channels", Severity.NOTICE, "Single channels are far larger than the rest")

_ROLES = (Role.CONV, Role.TRANSPOSED, Role.LINEAR, Role.EMBEDDING)
_LEAST_ROWS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outlier:
    """peak: largest magnitude / root mean square. row: largest row / median row, at `place`. errors: of int8."""

    name: str
    peak: float
    row: float
    place: int
    whole_error: float
    rows_error: float


def _find(subject: Subject) -> Iterator[Finding]:
    limits = subject.thresholds
    found = []
    screens = screens_of(subject)
    columns = subject.columns
    asked = subject.among(*_ROLES) & ~screens.level & (columns.numel >= limits.few) & columns.whole
    for one, t in subject.those(asked):
        outlier = _measure(one.name, t)
        if outlier is not None and (outlier.peak > limits.outlier_peak or outlier.row > limits.outlier_row):
            found.append(outlier)
    if not found:
        return
    found.sort(key=lambda each: -max(each.peak / limits.outlier_peak, each.row / limits.outlier_row))
    worst, names = found[0], [each.name for each in found]
    yield OUTLIER_CHANNELS.found(
        f"Row {worst.place:,} of {shown(worst.name)} reaches {worst.row:.3g} times the median row, and "
        f"{worst.peak:.3g} times the tensor's root mean square: int8 would cost "
        f"{human_share(worst.whole_error)} with one scale, {human_share(worst.rows_error)} with one for each "
        f"row{also(names)}.",
        subjects=names,
        evidence=(
            *(("peak_over_rms", worst.peak), ("row_over_median", worst.row), ("row", worst.place)),
            *(("int8_error", worst.whole_error), ("int8_error_by_row", worst.rows_error), ("tensors", len(found))),
            *(("threshold_peak", limits.outlier_peak), ("threshold_row", limits.outlier_row)),
        ),
        remedy="Trained language models have such channels, and need them. Quantise with a scale for each channel, or "
        "leave these layers as they are.",
    )


def _measure(name: str, t: TensorStatistics) -> _Outlier | None:
    rows = t.rows
    if rows is None or rows.count < _LEAST_ROWS or t.rms <= 0:
        return None
    peaks = row_largest(rows)
    usual = median(peaks)
    if usual <= 0:
        return None
    largest = max(abs(t.minimum), abs(t.maximum))
    step = 127 * math.sqrt(12) * t.rms
    return _Outlier(
        name=name,
        peak=largest / t.rms,
        row=float(peaks.max()) / usual,
        place=int(np.argmax(peaks)),
        whole_error=largest / step,
        rows_error=float(np.sqrt(np.square(peaks).mean())) / step,
    )


CHECK = Check(kinds=(OUTLIER_CHANNELS,), find=_find)
