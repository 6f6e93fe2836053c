"""Tensors whose bytes lie the other way round: NaN and magnitudes of every size as they are read, ordinary numbers when
each element's bytes are turned.

Trained weights span a decade or two between their tenth and ninetieth percentile (1.1 for normal numbers); read in the
wrong order, the last bits of a mantissa stand where the exponent does, and spread evenly over all of it (IEEE 754).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import also, shown
from inspector.health.subject import Examined, Subject
from inspector.weights.report import TensorStatistics

#: What is said of the size of numbers that nobody wrote.
OF_SIZES = (
    *("non-finite", "large-weight", "norm-variance-negative", "norm-variance-tiny", "norm-variance-huge"),
    *("norm-scale-near-zero", "norm-shift-silences", "dead-outputs", "dead-inputs", "untouched-rows"),
    *("padded-vocabulary", "unlike-siblings", "unlike-role", "shifted-weights", "outlier-channels"),
    *("half-precision-overflow", "half-precision-underflow", "values-out-of-proportion", "clipped-values"),
)
BYTE_SWAPPED = FindingKind("byte-swapped", Severity.ERROR, "A tensor looks byte-swapped", explains=OF_SIZES)

# From where on it is worth another look.
_HUGE = {"float16": 1e4}
_HUGE_ELSE = 1e30
_LEAST = 16
# Decades from the tenth to the ninetieth percentile of the magnitudes, as stored and turned.
_WIDE, _NARROW = 4.0, 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Swapped:
    """largest, turned: magnitudes of the finite elements as stored and turned. broken: how many are NaN or infinite."""

    name: str
    largest: float
    turned: float
    broken: int
    numel: int


def _find(subject: Subject) -> Iterator[Finding]:
    columns = subject.columns
    asked = subject.those(~columns.whole | (columns.largest >= min(_HUGE_ELSE, *_HUGE.values())))
    found = [each for one, t in asked if (each := _swapped(subject, one, t)) is not None]
    if not found:
        return
    worst, names = found[0], [each.name for each in found]
    yield BYTE_SWAPPED.found(
        f"{shown(worst.name)} looks byte-swapped: it reaches {worst.largest:.3g} in magnitude and holds "
        f"{worst.broken:,} NaN or infinite numbers of {worst.numel:,}; with the bytes of each turned it ends at "
        f"{worst.turned:.3g}{also(names)}.",
        subjects=names,
        evidence=(
            *(("largest", worst.largest), ("largest turned", worst.turned), ("non-finite", worst.broken)),
            *(("tensors", len(names)), ("threshold", subject.thresholds.large)),
        ),
        remedy="It was written in the other byte order (big-endian). Read it so: torch.Tensor.numpy().byteswap(), or "
        "numpy.frombuffer with dtype '>f4', and save it again.",
    )


def _swapped(subject: Subject, one: Examined, t: TensorStatistics) -> _Swapped | None:
    broken = t.nan + t.infinite
    largest = max(abs(t.minimum), abs(t.maximum)) if t.finite else 0.0
    if t.numel < _LEAST or not (broken or largest >= _HUGE.get(t.dtype, _HUGE_ELSE)):
        return None
    runs = subject.stretches(one)
    turned = subject.stretches(one, turned=True)
    if not runs or not turned:
        return None
    stored, other = np.concatenate(runs), np.concatenate(turned)
    if not np.isfinite(other).all() or np.abs(other).max() > subject.thresholds.large:
        return None
    if decades(stored) < _WIDE or not 0 < decades(other) < _NARROW:
        return None
    return _Swapped(name=one.name, largest=largest, turned=float(np.abs(other).max()), broken=broken, numel=t.numel)


def decades(values: NDArray[np.float32]) -> float:
    """Between the tenth and the ninetieth percentile of the magnitudes of what is finite and not zero."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0)]).astype(np.float64)
    if len(sizes) < _LEAST:
        return 0.0
    low, high = np.quantile(np.log10(sizes), (0.1, 0.9))
    return float(high - low)


CHECK = Check(kinds=(BYTE_SWAPPED,), find=_find)
