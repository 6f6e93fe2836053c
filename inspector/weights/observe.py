"""What the statistics alone show to be wrong. Full diagnosis needs more than one tensor's numbers at a time.

Floating tensors only: counters, quantised payloads and positions have other rules. Thresholds stand at the top.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.checkpoint.dtypes import find_dtype
from inspector.findings import Finding, FindingKind, Severity
from inspector.units import counted, human_share
from inspector.weights.report import TensorStatistics, WeightsReport

NON_FINITE = FindingKind("non-finite", Severity.ERROR, "A tensor holds NaN or infinity", also=(Severity.NOTICE,))
CONSTANT_WEIGHT = FindingKind("constant-weight", Severity.WARNING, "All numbers of a tensor are the same")
LARGE_WEIGHT = FindingKind("large-weight", Severity.WARNING, "A tensor has very large values")

# Trained weights of two or more dimensions have an RMS near 1 / sqrt(fan-in); hundreds are no working network.
LARGE = 1e3
# Masks hold infinities on purpose, and say so in their names.
_MASKS = ("mask", "attn_bias", "alibi")


def observe_weights(report: WeightsReport) -> tuple[Finding, ...]:
    """NaN and infinite numbers, weights that are one number throughout, weights far too large; in file order."""
    found: list[Finding] = []
    for statistics in report.tensors:
        dtype = find_dtype(statistics.dtype)
        if dtype is not None and dtype.floating and statistics.numel:
            found += _of_tensor(statistics)
    return tuple(found)


def _of_tensor(t: TensorStatistics) -> Iterator[Finding]:
    bad = t.nan + t.infinite
    if bad:
        masked = any(word in t.name.lower() for word in _MASKS) and not t.nan
        yield NON_FINITE.found(
            f"{t.name} holds {_count_of(t)} among {t.numel:,}, the first at index {t.first_non_finite:,}.",
            severity=Severity.NOTICE if masked else Severity.ERROR,
            subjects=(t.name,),
            evidence=(("nan", t.nan), ("infinite", t.infinite), ("numel", t.numel)),
            remedy="Masks are filled with infinity on purpose."
            if masked
            else "A forward pass through it answers NaN: go back to an earlier checkpoint.",
        )
    if len(t.shape) < 2 or bad == t.numel:
        return
    if t.minimum == t.maximum and t.numel > 1 and not bad:
        yield CONSTANT_WEIGHT.found(
            f"All {t.numel:,} numbers of {t.name} are {t.minimum:.4g}.",
            subjects=(t.name,),
            evidence=(("value", t.minimum),),
            remedy="Training rarely leaves a weight like this; layers that start at zero on purpose and were never "
            "trained do. Look at how it was written or initialised.",
        )
    largest = max(abs(t.minimum), abs(t.maximum))
    if largest > LARGE:
        yield LARGE_WEIGHT.found(
            f"{t.name} reaches {largest:.3g} in magnitude, with a root mean square of {t.rms:.3g}.",
            subjects=(t.name,),
            evidence=(("largest", largest), ("rms", t.rms)),
            remedy="Weights are usually below 1: was the training rate too high, or the tensor scaled by mistake?",
        )


def _count_of(t: TensorStatistics) -> str:
    parts = []
    if t.nan:
        parts.append(f"{t.nan:,} NaN ({human_share(t.nan / t.numel)})")
    if t.infinite:
        parts.append(counted(t.infinite, "infinite number"))
    return " and ".join(parts)
