"""Weights far too large: trained ones of two or more dimensions have an RMS near 1 / sqrt(fan-in)."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.subject import Subject

LARGE_WEIGHT = FindingKind("large-weight", Severity.WARNING, "A tensor has very large values")


def _find(subject: Subject) -> Iterator[Finding]:
    for one, t in subject.measured():
        largest = max(abs(t.minimum), abs(t.maximum)) if t.finite else 0.0
        if len(t.shape) < 2 or largest <= subject.thresholds.large:
            continue
        yield LARGE_WEIGHT.found(
            f"{one.name} reaches {largest:.3g} in magnitude, with a root mean square of {t.rms:.3g}.",
            subjects=(one.name,),
            evidence=(("largest", largest), ("rms", t.rms)),
            remedy="Weights are usually below 1: was the training rate too high, or the tensor scaled by mistake?",
        )


CHECK = Check(kinds=(LARGE_WEIGHT,), find=_find)
