"""Weights of a layer that are as good as zero: what it puts out is its bias, whatever comes in.

Trained weights have a root mean square near 1 / sqrt(fan-in) (LeCun et al. 1998, Efficient BackProp), a ten-thousandth
for the widest layers there are. Under a norm weight decay may take a dead layer to any scale (van Laarhoven 2017,
1706.05350), so that a layer without a bias is named only where its numbers are no full float32 any more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import also, shown
from inspector.health.roles import LAYERS, Role
from inspector.health.subject import Examined, Subject
from inspector.weights.report import TensorStatistics

VANISHED = FindingKind(
    "weights-vanished",
    Severity.WARNING,
    "A layer's weights are as good as zero",
    explains=("unlike-role", "unlike-siblings", "half-precision-underflow"),
)

_RMS = 1e-7
# A bias that lives is so large, and so many times its weights.
_BIAS, _TIMES = 1e-3, 1e4
# The smallest number that float32 holds in full.
_NORMAL = float(np.finfo(np.float32).tiny)


def _find(subject: Subject) -> Iterator[Finding]:
    found: list[tuple[float, float, str]] = []
    columns = subject.columns
    small = (columns.rms < _RMS) & (columns.zero < columns.numel) & (columns.numel >= subject.thresholds.few)
    for one, t in subject.those(subject.among(*LAYERS) & columns.whole & small):
        largest = max(abs(t.minimum), abs(t.maximum))
        bias = _bias_rms(subject, one)
        if largest < _NORMAL or (bias >= _BIAS and bias >= _TIMES * largest):
            found.append((largest, bias, one.name))
    if not found:
        return
    found.sort()
    largest, bias, name = found[0]
    names = [each for _, _, each in found]
    how = ", numbers that float32 does not hold in full (subnormal)" if largest < _NORMAL else ""
    beside = f", beside a bias of {bias:.3g}" if bias else ""
    yield VANISHED.found(
        f"{shown(name)} ends at {largest:.3g} in magnitude{how}{beside}{also(names)}.",
        subjects=names,
        evidence=(
            *(("largest", largest), ("bias_rms", bias), ("tensors", len(names))),
            *(("threshold_rms", _RMS), ("threshold_bias", _BIAS)),
        ),
        remedy="What comes in does not get through. A layer that its input no longer trains decays to this beside a "
        "bias that is still trained (a generator that ignores its noise). Memory that was never written to, and a "
        "scale applied twice, look so too. Take the tensor from an earlier checkpoint.",
    )


def _bias_rms(subject: Subject, one: Examined) -> float:
    """Of the bias beside it; 0 without one."""
    biases: list[TensorStatistics] = [
        other.statistics
        for other in subject.by_module.get(one.module, ())
        if other.role is Role.BIAS and other.statistics is not None and other.statistics.finite
    ]
    return max((t.rms for t in biases), default=0.0)


CHECK = Check(kinds=(VANISHED,), find=_find)
