"""Rows of an embedding that no training reached: equal to each other, or as long as they were made while the others
moved away (Land and Bartolo 2024, arXiv:2405.05417, who look for them by their distance from unused rows).

Of a row of d normal values with deviation s the mean magnitude is s sqrt(2 / pi), with a standard error of
s sqrt((1 - 2 / pi) / d).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.axes import is_table
from inspector.health.phrases import also, shown
from inspector.health.roles import Role
from inspector.health.subject import Subject
from inspector.units import human_share
from inspector.weights.report import Rows, TensorStatistics
from inspector.weights.rows import row_largest, row_means

UNTOUCHED_ROWS = FindingKind("untouched-rows", Severity.NOTICE, "Rows of an embedding were never trained")
PADDED_VOCABULARY = FindingKind("padded-vocabulary", Severity.INFO, "A vocabulary is filled up to a round number")

# torch's Embedding begins normal with deviation 1, those of transformers with 0.02.
_DEVIATIONS = (1.0, 0.02)
_MEAN = math.sqrt(2 / math.pi)
_ERROR = math.sqrt(1 - 2 / math.pi)
_LEAST_ROWS, _LEAST_COLUMNS = 16, 16
# Vocabularies are filled up to multiples of these, with fewer rows than one of them.
_ROUND = (256, 128, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Untouched:
    """count: rows. first: the first of them. how: what shows it. multiple: what the rows are filled up to, else 0."""

    name: str
    rows: int
    count: int
    first: int
    how: str
    multiple: int


def _find(subject: Subject) -> Iterator[Finding]:
    found = []
    for one, t in subject.measured(Role.EMBEDDING, Role.LINEAR):
        if not is_table(one, t):
            continue
        untouched = _untouched(subject, one.name, t)
        if untouched is not None:
            found.append(untouched)
    for padded, kind in ((False, UNTOUCHED_ROWS), (True, PADDED_VOCABULARY)):
        tables = [each for each in found if bool(each.multiple) is padded]
        if tables:
            yield _finding(subject, kind, sorted(tables, key=lambda each: -each.count))


def _untouched(subject: Subject, name: str, t: TensorStatistics) -> _Untouched | None:
    rows = t.rows
    if rows is None or t.distinct is not None:
        return None
    found = untouched_rows(rows, subject.thresholds.shell_errors)
    if found is None:
        return None
    places, how = found
    tail = bool(places[0] == rows.count - len(places))
    multiple = next((m for m in _ROUND if rows.count % m == 0 and len(places) < m), 0) if tail else 0
    return _Untouched(name=name, rows=rows.count, count=len(places), first=int(places[0]), how=how, multiple=multiple)


def untouched_rows(rows: Rows, shell_errors: float) -> tuple[NDArray[np.intp], str] | None:
    """(places of the rows that no training reached, what shows it, as half a sentence); None where there are none, or
    too few numbers to tell."""
    if rows.count < _LEAST_ROWS or rows.length < _LEAST_COLUMNS:
        return None
    same, zero = _equal(rows), row_largest(rows) == 0
    shell = _in_shell(rows, shell_errors)
    # One row of zeros is that of the padding token, and two rows may agree by chance.
    if zero.sum() > 1 and zero.sum() >= same.sum():
        return np.flatnonzero(zero), "are zero"
    if same.sum() > 2:
        return np.flatnonzero(same), "are all the same"
    if shell.any():
        return np.flatnonzero(shell), "are as long as when they were made, while the others moved"
    return None


def _equal(rows: Rows) -> NDArray[np.bool_]:
    """(rows,): those of the largest set of rows that agree in sum and largest magnitude."""
    marks = np.stack([row_means(rows), row_largest(rows)], axis=1)
    _, which, counts = np.unique(marks, axis=0, return_inverse=True, return_counts=True)
    most = int(np.argmax(counts))
    flags: NDArray[np.bool_] = which.reshape(-1) == most
    return flags & bool(counts[most] > 1)


def _in_shell(rows: Rows, errors: float) -> NDArray[np.bool_]:
    """(rows,): those of a new row's length, where the median row has another."""
    means = row_means(rows)
    for deviation in _DEVIATIONS:
        centre, error = deviation * _MEAN, deviation * _ERROR / math.sqrt(rows.length)
        near = np.abs(means - centre) <= errors * error
        # So many errors more, or the shells of moved and new rows run into each other.
        if abs(float(np.median(means)) - centre) > 3 * errors * error and 0 < near.mean() < 0.5:
            return near
    return np.zeros(rows.count, bool)


def _finding(subject: Subject, kind: FindingKind, tables: list[_Untouched]) -> Finding:
    worst, names = tables[0], [each.name for each in tables]
    share = human_share(worst.count / worst.rows)
    filled = f": they fill the vocabulary up to a multiple of {worst.multiple}" if worst.multiple else ""
    return kind.found(
        f"{worst.count:,} of {worst.rows:,} rows of {shown(worst.name)} ({share}) {worst.how}, "
        f"the first at {worst.first:,}{filled}{also(names)}.",
        subjects=names,
        evidence=(
            *(("rows", worst.count), ("of", worst.rows), ("first", worst.first), ("tensors", len(tables))),
            ("threshold_errors", subject.thresholds.shell_errors),
        ),
        remedy="No tokenizer gives these numbers, so nothing needs doing."
        if worst.multiple
        else "Tokens that never came up in training answer with noise, and so do tokens that were added and not "
        "trained: train on texts that hold them, or keep them out of prompts. A weight shared with the head moves in "
        "all rows.",
    )


CHECK = Check(kinds=(UNTOUCHED_ROWS, PADDED_VOCABULARY), find=_find)
