"""Filters of one layer that are the same, or nearly: they compute one feature twice (arXiv:1811.07275). Rows of a table
that are the same, to the bit: its entries cannot be told apart.

Rows that agree in sum and largest magnitude are read again and compared; near copies are looked for by cosine where the
matrix is small.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.axes import is_repeated, is_table, output_axis
from inspector.health.phrases import also, shown
from inspector.health.roles import Role
from inspector.health.screens import screens_of
from inspector.health.subject import Examined, Subject
from inspector.units import human_share
from inspector.weights.medians import median
from inspector.weights.report import TensorStatistics
from inspector.weights.rows import row_largest, row_means

DUPLICATE_FILTERS = FindingKind(
    "duplicate-filters", Severity.WARNING, "Filters of a layer are the same", also=(Severity.NOTICE,)
)
DUPLICATE_ROWS = FindingKind(
    "duplicate-rows", Severity.NOTICE, "Entries of a table are the same", also=(Severity.WARNING,)
)

_ROLES = (Role.CONV, Role.DEPTHWISE, Role.LINEAR, Role.RECURRENT, Role.EMBEDDING)
_MOST_ROWS = 1024
# Multiplications for near copies, of one layer and of the whole file: a second or so.
_MOST_WORK = 1 << 30
_MOST_WORK_OF_ALL = 1 << 33
_LEAST_ROWS = 4
# Exact copies are no chance even of 3 x 3 kernels.
_LEAST_EXACT = 8
# Natural logarithm of the odds against a pair of equal rows in a layer.
_SURE = 14.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copies:
    """count: rows that another one before them equals. row, of: the first pair. distance: one for all of them, or 0."""

    name: str
    rows: int
    count: int
    exact: bool
    row: int
    of: int
    distance: int

    @property
    def share(self) -> float:
        return self.count / self.rows


def _find(subject: Subject) -> Iterator[Finding]:
    groups: dict[tuple[FindingKind, Severity, bool], list[_Copies]] = defaultdict(list)
    left = _MOST_WORK_OF_ALL
    # Those that are known to be apart were compared already, and are no work.
    columns = subject.columns
    for one, t in subject.those(subject.among(*_ROLES) & columns.whole & ~screens_of(subject).apart):
        if not _is_fit(subject, one, t):
            continue
        assert t.rows is not None
        table = is_table(one, t)
        work = t.rows.count**2 * t.rows.length
        near = work <= min(left, _MOST_WORK) and t.rows.count <= _MOST_ROWS
        # Words that mean the same may lie near each other.
        wanted = t.rows.length >= subject.thresholds.duplicate_length and not table
        if wanted and not near:
            subject.leave_out("rows not compared for near copies: too many or too long", [one.name])
        near = near and wanted
        left -= work if near else 0
        found = _copies(subject, one, t, near=near)
        many = found is not None and found.share > subject.thresholds.duplicate_share
        if found is not None and (found.exact or many):
            copied = found.exact and not table and is_repeated(one)
            severity = Severity.WARNING if many and not copied else Severity.NOTICE
            groups[DUPLICATE_ROWS if table else DUPLICATE_FILTERS, severity, copied].append(found)
    for (kind, severity, copied), layers in groups.items():
        layers.sort(key=lambda each: -each.share)
        yield _finding(subject, kind, severity, layers, copied=copied)


def _is_fit(subject: Subject, one: Examined, t: TensorStatistics) -> bool:
    rows = t.rows
    if rows is None or rows.count < _LEAST_ROWS or rows.length < _LEAST_EXACT:
        return False
    table = is_table(one, t)
    if table and rows.length < subject.thresholds.duplicate_length:
        return False
    if not (table or output_axis(subject, one) == 0) or t.finite < t.numel:
        return False
    # Rows of a handful of values are equal by chance, and those of a constant anyway.
    ways = math.inf if t.distinct is None else rows.length * math.log(max(1, t.distinct))
    return ways > 2 * math.log(rows.count) + _SURE


def _copies(subject: Subject, one: Examined, t: TensorStatistics, *, near: bool) -> _Copies | None:
    assert t.rows is not None
    means, peaks = row_means(t.rows), row_largest(t.rows)
    alive = means > subject.thresholds.dead * median(means)
    candidates = _two_agree(means[alive], peaks[alive])
    if not candidates and not near:
        return None
    array = subject.array(one)
    if array is None:
        return None
    matrix = array.reshape(t.rows.count, t.rows.length)
    places = np.flatnonzero(alive)
    exact = _equal_rows(matrix, places) if candidates else []
    if is_table(one, t):
        exact = _without_filling(matrix, exact)
    pairs = exact or (_near_rows(matrix, places, subject.thresholds.duplicate_cosine) if near else [])
    if not pairs:
        return None
    distances = {row - of for row, of in pairs}
    return _Copies(
        name=one.name,
        rows=t.rows.count,
        count=len(pairs),
        exact=bool(exact),
        row=pairs[0][0],
        of=pairs[0][1],
        distance=distances.pop() if len(distances) == 1 and len(pairs) > 1 else 0,
    )


def _two_agree(means: NDArray[np.float64], peaks: NDArray[np.float64]) -> bool:
    """Whether two rows have one mean and one largest magnitude. Nearly always the means alone tell that none have."""
    ordered = np.sort(means)
    if not (ordered[1:] == ordered[:-1]).any():
        return False
    marks = np.stack([means, peaks], axis=1)
    return len(np.unique(marks, axis=0)) < len(marks)


def _equal_rows(matrix: NDArray[np.float64], places: NDArray[np.intp]) -> list[tuple[int, int]]:
    """(row, the first that equals it)."""
    first: dict[bytes, int] = {}
    pairs = []
    for row in places.tolist():
        of = first.setdefault((matrix[row] + 0.0).tobytes(), row)
        if of != row:
            pairs.append((row, of))
    return pairs


def _without_filling(matrix: NDArray[np.float64], pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Without rows of one number, and without the largest set of three or more equal rows: entries that are not used,
    of which the check of untouched rows tells."""
    pairs = [(row, of) for row, of in pairs if matrix[row].min() < matrix[row].max()]
    firsts = Counter(of for _, of in pairs)
    if not firsts:
        return []
    most, times = firsts.most_common(1)[0]
    return [(row, of) for row, of in pairs if times < 2 or of != most]


def _near_rows(matrix: NDArray[np.float64], places: NDArray[np.intp], least: float) -> list[tuple[int, int]]:
    """The same by the cosine of the angle between them, sign apart from it."""
    rows = matrix[places]
    with np.errstate(over="ignore", invalid="ignore"):
        rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    close = np.tril(rows @ rows.T > least, k=-1)
    found = np.flatnonzero(close.any(axis=1))
    return [(int(places[i]), int(places[int(np.argmax(close[i]))])) for i in found]


def _finding(
    subject: Subject, kind: FindingKind, severity: Severity, layers: Sequence[_Copies], *, copied: bool
) -> Finding:
    worst, table = layers[0], kind is DUPLICATE_ROWS
    names = [each.name for each in layers]
    how = "copied from" if copied else "exact copies of" if worst.exact else "nearly the same as"
    where = f", each {worst.distance:,} rows behind it" if worst.distance else f", row {worst.row:,} as {worst.of:,}"
    return kind.found(
        f"{worst.count:,} of {worst.rows:,} rows of {shown(worst.name)} ({human_share(worst.share)}) are {how} another"
        f"{where}{also(names)}.",
        severity=severity,
        subjects=names,
        evidence=(
            *(("copies", sum(each.count for each in layers)), ("rows", sum(each.rows for each in layers))),
            *(() if table else (("exact", worst.exact),)),
            ("tensors", len(layers)),
            *(() if table else (("threshold", subject.thresholds.duplicate_cosine),)),
            ("threshold_share", subject.thresholds.duplicate_share),
        ),
        remedy="Entries that were added as copies of others and not trained since are the same on purpose. Training "
        "moves two entries apart: otherwise a part of the table was written twice."
        if table
        else "Heads that are repeated for grouped queries and experts made from one layer are copied on purpose."
        if copied
        else "Layers that were widened by copying (Net2Net) look so, and grey filters of a first layer nearly. "
        "Otherwise the rows compute one feature several times: was a part of the tensor written twice?",
    )


CHECK = Check(kinds=(DUPLICATE_FILTERS, DUPLICATE_ROWS), find=_find)
