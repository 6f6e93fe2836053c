"""Values that pile up at the ends, or of which there are only a handful: clipped, or quantised and stored as floats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.dtypes import find_dtype
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import also, shown
from inspector.health.roles import LAYERS, Role
from inspector.health.screens import PILE, screens_of
from inspector.health.subject import Examined, Subject
from inspector.units import human_share
from inspector.weights.report import TensorStatistics
from inspector.weights.table import finite_cells

CLIPPED_VALUES = FindingKind("clipped-values", Severity.NOTICE, "Many values are exactly the largest or smallest")
WHOLE_NUMBERS = FindingKind(
    "whole-numbers", Severity.WARNING, "Weights are whole numbers, stored as floats", explains=("few-values",)
)
FEW_VALUES = FindingKind("few-values", Severity.NOTICE, "Weights take only a handful of values")

_ROLES = (*LAYERS, Role.EMBEDDING)
# Values at the very end against those at the next one: a uniform grid has as many there.
_PILE = PILE - 1
# Elements for each value, below which few values are chance.
_EACH = 16
# Whole numbers that were weights once reach this, in so large a tensor.
_LEAST_WHOLE, _LARGE = 2, 1024
# Rows quantised one by one share no grid. Some of them are looked at, in some tensors.
_TENSORS, _ROWS, _LONG_ROW = 3, 8, 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clipped:
    name: str
    numel: int
    count: int
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Few:
    name: str
    distinct: int
    of_row: bool


def _find(subject: Subject) -> Iterator[Finding]:
    clipped: list[_Clipped] = []
    few: list[_Few] = []
    whole: list[_Few] = []
    columns, even = subject.columns, screens_of(subject).even
    asked = subject.among(*_ROLES) & (columns.numel > subject.thresholds.few) & columns.varied
    # Of few values, or such that more than a few may lie at the ends.
    for one, t in subject.those(asked & ((columns.distinct <= 256) | ~even)):
        if not _is_wide(one):
            continue
        if t.distinct is not None:
            if t.numel >= _EACH * t.distinct:
                found = _Few(name=one.name, distinct=t.distinct, of_row=False)
                (whole if _is_rounded(subject, one, t) else few).append(found)
        elif _edge_share(t) > subject.thresholds.clipped:
            clipped += _clipped(subject, one, t)
    few += _few_of_rows(subject) if not few and not whole else []
    if whole:
        yield _whole_finding(sorted(whole, key=lambda each: each.distinct))
    if clipped:
        yield _clipped_finding(subject, sorted(clipped, key=lambda each: -each.count / each.numel))
    if few:
        yield _few_finding(sorted(few, key=lambda each: each.distinct))


def _is_wide(one: Examined) -> bool:
    """Not of a type that has few values by itself."""
    dtype = find_dtype(one.tensor.dtype)
    return dtype is not None and dtype.bits > 8


def _edge_share(t: TensorStatistics) -> float:
    """Share of the elements in the outermost cells of the table: an upper bound of those at the very ends."""
    _, _, counts = finite_cells(t.table, exact=False)
    return float(max(counts[0], counts[-1])) / t.numel if len(counts) else 0.0


def _clipped(subject: Subject, one: Examined, t: TensorStatistics) -> Iterator[_Clipped]:
    array = subject.array(one)
    if array is None:
        return
    values = array[np.isfinite(array)].ravel()
    # A pile at zero is sparsity.
    ends = ((t.maximum, _at_end(values)), (t.minimum, _at_end(-values)))
    count = sum(n for end, (n, pile) in ends if end and pile and n > subject.thresholds.clipped * t.numel)
    if count:
        yield _Clipped(name=one.name, numel=t.numel, count=count, low=t.minimum, high=t.maximum)


def _at_end(values: NDArray[np.float64]) -> tuple[int, bool]:
    """How many are the largest, and whether they pile up there: many more than there are at the next value."""
    largest = values.max()
    count = int((values == largest).sum())
    rest = values[values < largest]
    following = int((rest == rest.max()).sum()) if len(rest) else 0
    return count, count > _PILE * max(1, following)


def _is_rounded(subject: Subject, one: Examined, t: TensorStatistics) -> bool:
    """Whether they are whole numbers as rounding or cutting leaves them of weights around zero: the larger, the fewer,
    on both sides. Codes of a quantised layer have a scale beside them; a fixed filter is small."""
    if max(abs(t.minimum), abs(t.maximum)) < _LEAST_WHOLE or t.numel < _LARGE or t.minimum >= 0:
        return False
    if any(other.role is Role.SCALE for other in subject.by_module[one.module]):
        return False
    array = subject.array(one)
    if array is None or not np.array_equal(array, np.rint(array)):
        return False
    sizes, counts = np.unique(np.abs(array), return_counts=True)
    # Zero has one sign, the others two; the last ones are chance.
    counts = np.where(sizes == 0, 2 * counts, counts)
    return bool(sizes[0] == 0 and (np.diff(counts[counts >= _EACH]) < 0).all())


def _whole_finding(tensors: Sequence[_Few]) -> Finding:
    worst, names = tensors[0], [each.name for each in tensors]
    return WHOLE_NUMBERS.found(
        f"{shown(worst.name)} holds whole numbers only, {worst.distinct:,} different ones, most often 0{also(names)}.",
        subjects=names,
        evidence=(("distinct", worst.distinct), ("tensors", len(names))),
        remedy="Weights that went through an integer type lost what was behind the point: take them from the file "
        "before that. Codes of a quantised layer need its scale, which is not beside them.",
    )


def _few_of_rows(subject: Subject) -> Iterator[_Few]:
    """Of the matrices with the longest rows."""
    fit = [
        (t.rows.length, one)
        for one, t in subject.measured(Role.LINEAR, Role.CONV, Role.EMBEDDING)
        if t.rows is not None and t.rows.length >= _LONG_ROW and t.distinct is None and _is_wide(one)
    ]
    for _, one in sorted(fit, key=lambda each: -each[0])[:_TENSORS]:
        array = subject.array(one)
        if array is None:
            continue
        rows = array.reshape(array.shape[0], -1)[:_ROWS]
        counts = [len(np.unique(row)) for row in rows]
        if max(counts) <= 256 and max(counts) * 4 <= rows.shape[1] and min(counts) > 1:
            yield _Few(name=one.name, distinct=max(counts), of_row=True)


def _clipped_finding(subject: Subject, tensors: Sequence[_Clipped]) -> Finding:
    worst, names = tensors[0], [each.name for each in tensors]
    return CLIPPED_VALUES.found(
        f"{worst.count:,} of {worst.numel:,} values of {shown(worst.name)} "
        f"({human_share(worst.count / worst.numel)}) are exactly its smallest, {worst.low:.4g}, "
        f"or its largest, {worst.high:.4g}{also(names)}.",
        subjects=names,
        evidence=(
            *(("count", worst.count), ("numel", worst.numel), ("minimum", worst.low), ("maximum", worst.high)),
            *(("tensors", len(tensors)), ("threshold", subject.thresholds.clipped)),
        ),
        remedy="Weights that are clipped in training (Wasserstein critics, quantisation-aware training) look so. "
        "Otherwise values beyond the range of a type or of a scale were lost when the file was made.",
    )


def _few_finding(tensors: Sequence[_Few]) -> Finding:
    worst, names = tensors[0], [each.name for each in tensors]
    part = "each row" if worst.of_row else "the whole tensor"
    bits = max(1, (worst.distinct - 1).bit_length())
    return FEW_VALUES.found(
        f"{shown(worst.name)} takes {worst.distinct:,} different values in {part}: what {bits} bits hold, stored as "
        f"floats{also(names)}.",
        subjects=names,
        evidence=(("distinct", worst.distinct), ("bits", bits), ("tensors", len(tensors)), ("threshold", 256)),
        remedy="Quantised weights that were turned back into floats look so: the file could be far smaller, and what "
        "rounding took away is not in it. Binary and ternary networks are like this on purpose.",
    )


CHECK = Check(kinds=(CLIPPED_VALUES, WHOLE_NUMBERS, FEW_VALUES), find=_find)
