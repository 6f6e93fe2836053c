"""A gradient scaler that has backed off below 1: half precision overflowed again and again (1710.03740)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.subject import Subject

SCALE_LOW = FindingKind(
    "gradient-scale-low", Severity.WARNING, "A gradient scaler has backed off very far", also=(Severity.ERROR,)
)


def _find(subject: Subject) -> Iterator[Finding]:
    lowest = subject.thresholds.lowest_scale
    for scaler in subject.training.scalers:
        if scaler.scale is None or (scaler.scale >= lowest and math.isfinite(scaler.scale)):
            continue
        dead = not math.isfinite(scaler.scale) or scaler.scale <= 0
        yield SCALE_LOW.found(
            f"The gradient scaler in {scaler.label} has come down to {scaler.scale:.3g}; it begins at 65,536.",
            severity=Severity.ERROR if dead else Severity.WARNING,
            subjects=(scaler.label,),
            evidence=(("scale", scaler.scale), ("threshold", lowest)),
            remedy="Every loss is multiplied by it, so every gradient would be lost: begin with a new GradScaler."
            if dead
            else "It halves whenever a gradient is infinite or NaN, and so many times in a row means that all steps "
            "were skipped: look for NaN in the weights or the loss. A scaler set up with so low a scale is harmless.",
        )


CHECK = Check(kinds=(SCALE_LOW,), find=_find)
