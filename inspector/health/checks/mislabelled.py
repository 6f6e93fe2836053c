"""Tensors whose sixteen bits are of the other type: float16 read as bfloat16, or the other way round.

bfloat16 has eight bits of exponent and float16 five (IEEE 754): read as the other, a spread of one decade becomes one
of eight, or of an eighth. So the numbers lie all over, or all of one size, as they are stored, and in order as the
other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.checks.byte_order import OF_SIZES, decades
from inspector.health.phrases import also, shown
from inspector.health.subject import Examined, Subject
from inspector.weights.report import TensorStatistics

MISLABELLED = FindingKind(
    "bits-of-another-type", Severity.ERROR, "A tensor holds the bits of another type", explains=OF_SIZES
)

_OTHER = {"bfloat16": "float16", "float16": "bfloat16"}
_LEAST = 256
# Decades from the tenth to the ninetieth percentile of the magnitudes: all over, all of one size, and in order.
_WIDE, _FLAT, _ORDER = 4.0, 0.3, (0.7, 2.0)
# Median magnitudes of weights that are in order.
_USUAL = (1e-4, 2.0)
# Numbers of one size are of both signs, each of at least this part, and of many values.
_SIGN, _VALUES = 0.2, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mislabelled:
    """stored, other: median magnitudes as they are stored, and as the other type."""

    name: str
    dtype: str
    stored: float
    other: float


def _find(subject: Subject) -> Iterator[Finding]:
    found = [each for one, t in subject.measured() if (each := _mislabelled(subject, one, t)) is not None]
    if not found:
        return
    worst, names = found[0], [each.name for each in found]
    other = _OTHER[worst.dtype]
    yield MISLABELLED.found(
        f"{shown(worst.name)} is stored as {worst.dtype} and looks like {other}: its median magnitude is "
        f"{worst.stored:.3g}, and {worst.other:.3g} where its bits are read as {other}{also(names)}.",
        subjects=names,
        evidence=(
            *(("median", worst.stored), ("median as the other", worst.other), ("other", other)),
            *(("tensors", len(names)), ("threshold decades", _WIDE)),
        ),
        remedy=f"The bits were relabelled, not cast (a view in place of .to): torch.Tensor.view(torch.{other}) gives "
        "the numbers back, to be saved with their own type.",
    )


def _mislabelled(subject: Subject, one: Examined, t: TensorStatistics) -> _Mislabelled | None:
    if t.dtype not in _OTHER or t.numel < _LEAST or (t.distinct is not None and t.distinct < _VALUES):
        return None
    runs = subject.stretches(one)
    if not runs:
        return None
    values = np.concatenate(runs)
    other = _as_other(values, t.dtype)
    if not np.isfinite(other).all() or not _ORDER[0] < decades(other) < _ORDER[1]:
        return None
    width = decades(values)
    one_size = 0 < width < _FLAT and min((values > 0).mean(), (values < 0).mean()) > _SIGN
    if not (width > _WIDE if t.dtype == "bfloat16" else one_size):
        return None
    stored, turned = _median(values), _median(other)
    if not _USUAL[0] < turned < _USUAL[1]:
        return None
    return _Mislabelled(name=one.name, dtype=t.dtype, stored=stored, other=turned)


def _as_other(values: NDArray[np.float32], dtype: str) -> NDArray[np.float32]:
    """The same bits as the other type. Of bfloat16 they are the upper half of float32's."""
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype == "bfloat16":
            return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.float16).astype(np.float32)
        return (values.astype(np.float16).view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def _median(values: NDArray[np.float32]) -> float:
    finite = np.abs(values[np.isfinite(values)])
    return float(np.median(finite)) if len(finite) else 0.0


CHECK = Check(kinds=(MISLABELLED,), find=_find)
