"""Weights far too large: trained ones of two or more dimensions have an RMS near 1 / sqrt(fan-in)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import also, shown
from inspector.health.roles import Role
from inspector.health.subject import Subject

_VECTORS = frozenset({Role.BIAS, Role.NORM_SCALE, Role.NORM_SHIFT, Role.LAYER_SCALE, Role.TOKEN})

LARGE_WEIGHT = FindingKind("large-weight", Severity.WARNING, "A tensor has very large values", also=(Severity.NOTICE,))


def _find(subject: Subject) -> Iterator[Finding]:
    limits = subject.thresholds
    groups: dict[Severity, list[tuple[float, float, str]]] = defaultdict(list)
    columns = subject.columns
    for one, t in subject.those((columns.largest > limits.large) | (columns.rms > limits.large_rms)):
        known = one.role.is_weight or one.role is Role.EMBEDDING
        if not t.finite or not (known or one.role in _VECTORS or (one.role is Role.OTHER and len(t.shape) > 1)):
            continue
        largest = max(abs(t.minimum), abs(t.maximum))
        spread = known and t.numel >= limits.few and t.rms > limits.large_rms
        # What nobody knows may be anything, and a bias of -10,000 be meant.
        if largest > limits.large or spread:
            # A norm behind the layer makes its scale free, so that a spread alone is a note; and no sum in float32 is
            # left with a digit beside what is absurd.
            wrong = (known and largest > limits.large) or (one.role is not Role.OTHER and largest >= limits.absurd)
            groups[Severity.WARNING if wrong else Severity.NOTICE].append((largest, t.rms, one.name))
    for severity, tensors in groups.items():
        tensors.sort(key=lambda each: -each[0])
        largest, rms, name = tensors[0]
        names = [each for _, _, each in tensors]
        yield LARGE_WEIGHT.found(
            f"{shown(name)} reaches {largest:.3g} in magnitude, with a root mean square of {rms:.3g}{also(names)}.",
            severity=severity,
            subjects=names,
            evidence=(
                *(("largest", largest), ("rms", rms), ("tensors", len(names))),
                *(("threshold_largest", limits.large), ("threshold_rms", limits.large_rms)),
            ),
            remedy="Weights are usually below 1; a norm behind the layer makes its scale free, and tables of numbers "
            "that are no weights may be any size. Otherwise: was the training rate too high, or the tensor scaled by "
            "mistake?",
        )


CHECK = Check(kinds=(LARGE_WEIGHT,), find=_find)
