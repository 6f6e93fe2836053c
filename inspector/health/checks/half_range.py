"""What a cast to float16 would do: numbers beyond its largest, and numbers too small for it (Micikevicius 2018,
arXiv 1710.03740). Advice for whoever casts; nothing is wrong with the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import listed
from inspector.health.roles import Role
from inspector.health.screens import COARSE, screens_of
from inspector.health.subject import Examined, Subject
from inspector.units import counted, human_share
from inspector.weights.histogram import counts_between
from inspector.weights.report import TensorStatistics
from inspector.weights.table import EXACT_DTYPES, to_arrays

OVERFLOWS = FindingKind("half-precision-overflow", Severity.NOTICE, "A cast to half precision would overflow")
UNDERFLOWS = FindingKind("half-precision-underflow", Severity.INFO, "A cast to half precision would lose small numbers")

LARGEST = 65504.0
# Numbers from here on are rounded to infinity: half a step beyond the largest.
_INFINITE = 65520.0
# Half of the smallest number, which is 2^-24: smaller ones become zero. Below 2^-14 digits are lost one by one.
_ZERO, _COARSE = 2.0**-25, COARSE
# The first cells of the table at or beyond 2^-25, 2^-14, and the same on the other side of zero.
_BORDERS = np.array([0x3300, 0x3880, 0x8000, 0xB300, 0xB880])
_WIDER = ("float32", "float64", "bfloat16")
# They stay in float32 in a network that is cast with care.
_STAY = (Role.RUNNING_VAR, Role.RUNNING_MEAN, Role.MOMENT, Role.BUFFER, Role.MASK, Role.COUNTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loss:
    """Of one weight: how many numbers other than zero become zero, and how many subnormal."""

    name: str
    zeroed: float
    coarse: float
    nonzero: int


def _find(subject: Subject) -> Iterator[Finding]:
    beyond: list[TensorStatistics] = []
    losses: list[_Loss] = []
    limits = subject.thresholds
    columns = subject.columns
    large = columns.largest >= _INFINITE
    # A bias of a millionth is lost in the sum that it is added to anyway.
    small = (columns.ndim >= 2) & (columns.numel >= limits.few) & columns.varied & ~screens_of(subject).fine
    for one, t in subject.those((columns.finite > 0) & (large | small & ~subject.among(*_STAY))):
        if t.dtype not in _WIDER or t.fits == "float16":
            continue
        if max(abs(t.minimum), abs(t.maximum)) >= _INFINITE and (one.role not in _STAY or _is_norms(subject, one)):
            beyond.append(t)
        if one.role in _STAY or len(t.shape) < 2 or t.numel < limits.few or t.minimum == t.maximum:
            continue
        loss = _loss(t)
        if loss.nonzero and (
            loss.zeroed > limits.cast_lost * loss.nonzero or loss.coarse > limits.cast_coarse * loss.nonzero
        ):
            losses.append(loss)
    if beyond:
        largest = max(max(abs(t.minimum), abs(t.maximum)) for t in beyond)
        yield OVERFLOWS.found(
            f"{counted(len(beyond), 'tensor')} ({listed([t.name for t in beyond])}) "
            f"{'reaches' if len(beyond) == 1 else 'reach'} {largest:.4g} in magnitude; float16 ends at {LARGEST:,.0f}.",
            subjects=[t.name for t in beyond],
            evidence=(("tensors", len(beyond)), ("largest", largest), ("limit", LARGEST)),
            remedy="As float16 these numbers are infinite. Use bfloat16, or leave these tensors in float32 (running "
            "variances and an optimizer's moments always).",
        )
    if losses:
        zeroed, coarse = sum(x.zeroed for x in losses), sum(x.coarse for x in losses)
        whole = sum(x.nonzero for x in losses)
        yield UNDERFLOWS.found(
            f"As float16, {human_share(zeroed / whole)} of the numbers of {counted(len(losses), 'weight')} "
            f"({listed([x.name for x in losses])}) would become 0 and {human_share(coarse / whole)} would lose "
            "digits.",
            subjects=[x.name for x in losses],
            evidence=(
                *(("weights", len(losses)), ("zeroed", zeroed / whole), ("coarse", coarse / whole)),
                *(("zero below", _ZERO), ("coarse below", _COARSE)),
            ),
            remedy="bfloat16 keeps numbers this small, each within 2^-9 of its value. Harmless where they are small "
            "beside others that they are added to.",
        )


def _is_norms(subject: Subject, one: Examined) -> bool:
    """Whether it is the variance of a batch norm, which model.half() casts with the rest."""
    return one.role is Role.RUNNING_VAR and any(o.role is Role.RUNNING_MEAN for o in subject.by_module[one.module])


def _loss(t: TensorStatistics) -> _Loss:
    below, near, above = _small(t)
    return _Loss(
        name=t.name,
        zeroed=max(0.0, float(near) - t.zero),
        coarse=float(below + above),
        nonzero=t.finite - t.zero,
    )


def _small(t: TensorStatistics) -> tuple[float, float, float]:
    """Elements between -2^-14, -2^-25, 2^-25 and 2^-14.

    All four are borders of the table's cells, whose codes tell it; only where the tensor ends on one of them, or its
    values are points, does it matter on which side that one counts.
    """
    if t.table.of or t.numbers_dtype in EXACT_DTYPES or {abs(t.minimum), abs(t.maximum)} & {_ZERO, _COARSE}:
        below, near, above = counts_between(t, np.array([-_COARSE, -_ZERO, _ZERO, _COARSE]))
        return float(below), float(near), float(above)
    codes, counts = to_arrays(t.table)
    places = np.searchsorted(codes, _BORDERS)
    before = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=before[1:])
    zero, coarse, minus, minus_zero, minus_coarse = before[places].tolist()
    return minus_coarse - minus_zero, zero + minus_zero - minus, coarse - zero


CHECK = Check(kinds=(OVERFLOWS, UNDERFLOWS), find=_find)
