"""Quantised weights that use next to none of their levels, or pile up at the last ones: their scale is wrong.

A symmetric scale is the largest magnitude over 127 (Jacob et al. 2018, 1712.05877), so that some weight is at 127, and
normal ones use most levels below it. With the largest magnitude itself as scale, only -1, 0 and 1 are left.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health import role_names as words
from inspector.health.phrases import also, shown
from inspector.health.roles import Role
from inspector.health.subject import Examined, Subject
from inspector.units import human_share
from inspector.weights.report import TensorStatistics
from inspector.weights.table import finite_cells

LEVELS = FindingKind("quantised-levels", Severity.WARNING, "Quantised weights do not use their levels")

# Ternary networks have a third of zeros, four bits in a byte a tenth.
_LEVEL, _ZEROS = 3, 0.8
# Weights are clipped at the last levels to this part at most.
_CLIPPED = 0.25
_LEAST = 256
# Where so many others, and this part of all, reach so high, one with three levels is no ternary network's.
_HIGH, _OTHERS, _MOST = 100, 3, 0.75


def _find(subject: Subject) -> Iterator[Finding]:
    unused: list[tuple[str, TensorStatistics, float]] = []
    piled: list[tuple[str, TensorStatistics, float]] = []
    scaled = [
        (one, t, max(abs(t.minimum), abs(t.maximum)))
        for one in subject.tensors
        if (t := one.statistics) is not None
        and t.numel >= _LEAST
        and one.tensor.dtype == "int8"
        and _is_scaled(subject, one)
    ]
    high = sum(largest >= _HIGH for _, _, largest in scaled)
    others = high >= max(_OTHERS, _MOST * len(scaled))
    for one, t, largest in scaled:
        if 0 < largest <= _LEVEL and (others or t.zero > _ZEROS * t.numel):
            unused.append((one.name, t, t.zero / t.numel))
        elif largest >= 127 and (share := _at_ends(t)) > _CLIPPED:
            piled.append((one.name, t, share))
    for found, how in ((unused, _unused), (piled, _piled)):
        if found:
            name, t, share = max(found, key=lambda each: each[2])
            names = [each[0] for each in found]
            yield LEVELS.found(
                f"{how(name, t, share)}{also(names)}.",
                subjects=names,
                evidence=(("tensors", len(names)), ("share", share), ("lowest", t.minimum), ("highest", t.maximum)),
                remedy="The scale is the largest weight over 127, as a rule: with another one (the largest weight "
                "itself, the scale of another layer, its inverse) nearly everything is rounded away, or clipped. "
                "Quantise again. Ternary and sign networks use few levels on purpose, and few zeros.",
            )


def _unused(name: str, t: TensorStatistics, share: float) -> str:
    return (
        f"{shown(name)} uses {t.maximum - t.minimum + 1:.0f} of the 255 levels of int8, {t.minimum:.0f} to "
        f"{t.maximum:.0f}, and {human_share(share)} of it are 0"
    )


def _piled(name: str, t: TensorStatistics, share: float) -> str:
    return f"{human_share(share)} of {shown(name)} are at the last levels of int8, {t.minimum:.0f} or {t.maximum:.0f}"


def _is_scaled(subject: Subject, one: Examined) -> bool:
    """A quantised matrix, with its scale beside it."""
    if one.role is not Role.QUANTISED or len(one.tensor.shape) < 2:
        return False
    scales = (*words.SCALES, "scale", f"{one.last}_scale", f"{one.last}_scales")
    return any(subject.beside(one, last) is not None for last in scales)


def _at_ends(t: TensorStatistics) -> float:
    _, _, counts = finite_cells(t.table, exact=True)
    return float(counts[0] + counts[-1]) / t.numel if len(counts) > 1 else 0.0


CHECK = Check(kinds=(LEVELS,), find=_find)
