"""Weights that are one number throughout."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.subject import Subject

CONSTANT_WEIGHT = FindingKind("constant-weight", Severity.WARNING, "All numbers of a tensor are the same")


def _find(subject: Subject) -> Iterator[Finding]:
    for one, t in subject.measured():
        if len(t.shape) < 2 or t.numel < 2 or t.nan or t.infinite or t.minimum != t.maximum:
            continue
        yield CONSTANT_WEIGHT.found(
            f"All {t.numel:,} numbers of {one.name} are {t.minimum:.4g}.",
            subjects=(one.name,),
            evidence=(("value", t.minimum),),
            remedy="Training rarely leaves a weight like this; layers that start at zero on purpose and were never "
            "trained do. Look at how it was written or initialised.",
        )


CHECK = Check(kinds=(CONSTANT_WEIGHT,), find=_find)
