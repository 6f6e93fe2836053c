"""NaN and infinity: one of them usually poisons every answer of the network (IEEE 754)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import also, shown
from inspector.health.roles import Role
from inspector.health.subject import Examined, Subject
from inspector.units import counted, human_place, human_share
from inspector.weights.report import NumberKind, TensorStatistics

NON_FINITE = FindingKind("non-finite", Severity.ERROR, "A tensor holds NaN or infinity", also=(Severity.NOTICE,))
# Masks hold infinities on purpose; observers of quantisation that saw nothing, and a best loss not yet beaten, too.
_FILLED = frozenset({Role.MASK, Role.BUFFER, Role.COUNTER})
_KEPT = frozenset({Role.OTHER, Role.COUNTER, Role.BUFFER})
_LISTED = 20
_MASKS = ("mask", "attn_bias", "alibi")

Measured = tuple[Examined, TensorStatistics]


def _find(subject: Subject) -> Iterator[Finding]:
    found: dict[Severity, list[Measured]] = defaultdict(list)
    # A scale that is NaN spoils a whole block of quantised weights; parts and stored values are numbers like others.
    decoded = subject.decoded(NumberKind.VALUES, NumberKind.PARTS, NumberKind.STORED)
    for one, t in (*subject.measured(), *decoded):
        if t.nan + t.infinite:
            found[_severity(one, t)].append((one, t))
    for severity, tensors in found.items():
        yield _finding(severity, tensors)


def _severity(one: Examined, t: TensorStatistics) -> Severity:
    if not t.nan and (one.role in _FILLED or any(word in one.name.lower() for word in _MASKS)):
        return Severity.NOTICE
    # "best_loss": a number beside the network.
    return Severity.NOTICE if not t.shape and one.role in _KEPT else Severity.ERROR


def _finding(severity: Severity, tensors: Sequence[Measured]) -> Finding:
    one, t = tensors[0]
    names = [other.name for other, _ in tensors]
    return NON_FINITE.found(
        f"{shown(one.name)} holds {_count_of(t)} among {t.numel:,}{_place(t)}{_also(tensors)}.",
        severity=severity,
        subjects=names,
        evidence=(
            ("nan", sum(each.nan for _, each in tensors)),
            ("infinite", sum(each.infinite for _, each in tensors)),
            ("numel", sum(each.numel for _, each in tensors)),
            ("tensors", len(tensors)),
            ("first", t.first_non_finite or 0),
            *((f"tensor {n}", f"{each.name}: {_count_of(s)}{_place(s)}") for n, (each, s) in _listed(tensors)),
            ("threshold", 0),
        ),
        remedy="Masks are filled with infinity on purpose, and so is what waits for its first value."
        if severity is Severity.NOTICE
        else "A forward pass through it answers NaN: go back to an earlier checkpoint.",
    )


def _listed(tensors: Sequence[Measured]) -> Iterator[tuple[int, Measured]]:
    """Those whose counts and places stand in the evidence."""
    return enumerate(tensors[:_LISTED], 1)


def _also(tensors: Sequence[Measured]) -> str:
    """The others, each with what it holds and where: NaN and infinity have other causes."""
    names = [shown(one.name) for one, _ in tensors]
    return also([f"{name} ({_count_of(t)}{_place(t)})" for name, (_, t) in zip(names, tensors, strict=True)])


def _place(t: TensorStatistics) -> str:
    """ ", the first at [3, 5, 1, 1]": the flat index in the tensor's own coordinates."""
    if not t.shape or t.first_non_finite is None:
        return ""
    if t.decoding is not None and t.decoding.kind is NumberKind.STORED:
        # It counts among the stored values, which have no place in the tensor without their indices.
        return f", the first at stored value {t.first_non_finite:,}"
    return f", the first at {human_place(t.first_non_finite, t.shape)}"


def _count_of(t: TensorStatistics) -> str:
    parts = []
    if t.nan:
        parts.append(f"{t.nan:,} NaN ({human_share(t.nan / t.numel)})")
    if t.infinite:
        parts.append(counted(t.infinite, "infinite number"))
    return " and ".join(parts)


CHECK = Check(kinds=(NON_FINITE,), find=_find)
