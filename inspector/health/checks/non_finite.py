"""NaN and infinity: one of them usually poisons every answer of the network (IEEE 754)."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.subject import Subject
from inspector.units import counted, human_share
from inspector.weights.report import NumberKind, TensorStatistics

NON_FINITE = FindingKind("non-finite", Severity.ERROR, "A tensor holds NaN or infinity", also=(Severity.NOTICE,))
# Masks hold infinities on purpose, and say so in their names.
_MASKS = ("mask", "attn_bias", "alibi")


def _find(subject: Subject) -> Iterator[Finding]:
    # A scale that is NaN spoils a whole block of quantised weights; parts and stored values are numbers like others.
    decoded = subject.decoded(NumberKind.VALUES, NumberKind.PARTS, NumberKind.STORED)
    for one, t in (*subject.measured(), *decoded):
        bad = t.nan + t.infinite
        if not bad:
            continue
        masked = any(word in t.name.lower() for word in _MASKS) and not t.nan
        yield NON_FINITE.found(
            f"{one.name} holds {_count_of(t)} among {t.numel:,}, the first at index {t.first_non_finite:,}.",
            severity=Severity.NOTICE if masked else Severity.ERROR,
            subjects=(one.name,),
            evidence=(("nan", t.nan), ("infinite", t.infinite), ("numel", t.numel)),
            remedy="Masks are filled with infinity on purpose."
            if masked
            else "A forward pass through it answers NaN: go back to an earlier checkpoint.",
        )


def _count_of(t: TensorStatistics) -> str:
    parts = []
    if t.nan:
        parts.append(f"{t.nan:,} NaN ({human_share(t.nan / t.numel)})")
    if t.infinite:
        parts.append(counted(t.infinite, "infinite number"))
    return " and ".join(parts)


CHECK = Check(kinds=(NON_FINITE,), find=_find)
