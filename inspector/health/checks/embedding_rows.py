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

LONG_ROWS = FindingKind(
    "embedding-rows-outsized",
    Severity.WARNING,
    "The last rows of an embedding are new and far too long",
    explains=("outlier-channels",),
)
UNTOUCHED_ROWS = FindingKind("untouched-rows", Severity.NOTICE, "Rows of an embedding were never trained")
PADDED_VOCABULARY = FindingKind("padded-vocabulary", Severity.INFO, "A vocabulary is filled up to a round number")

# torch's Embedding begins normal with deviation 1, those of transformers with 0.02.
_DEVIATIONS = (1.0, 0.02)
_MEAN = math.sqrt(2 / math.pi)
_ERROR = math.sqrt(1 - 2 / math.pi)
_LEAST_ROWS, _LEAST_COLUMNS = 16, 16
# Rows in the shell of new ones are more than this many times what the shells on both sides let expect there (their
# geometric mean), and more than so few: one or two of the moved ones pass through it by chance.
_TIMES, _FEW = 2, 2
# New rows are so many times as long as trained ones before it matters to a softmax; so many at least.
_LONG, _LEAST_LONG = 3.0, 4
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
        long = _long_tail(t)
        if long is not None:
            yield _long_finding(one.name, *long)
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


def _long_tail(t: TensorStatistics) -> tuple[int, Rows, float] | None:
    """(first row, rows, times as long) of a block at the end whose rows are as alike in length as random ones, and far
    longer than all before them."""
    rows = t.rows
    if rows is None or rows.count < _LEAST_ROWS or rows.length < _LEAST_COLUMNS or t.finite < t.numel:
        return None
    means = row_means(rows)
    usual = float(np.median(means))
    short = np.flatnonzero(means <= _LONG * usual)
    first = int(short[-1]) + 1 if len(short) else rows.count
    block = means[first:]
    if usual <= 0 or len(block) < _LEAST_LONG or (means[:first] > _LONG * usual).any():
        return None
    centre = float(block.mean())
    # Of normal numbers; those of training differ by far more.
    random = float(block.std()) <= 2 * _ERROR / _MEAN / math.sqrt(rows.length) * centre
    return (first, rows, centre / usual) if random else None


def _long_finding(name: str, first: int, rows: Rows, times: float) -> Finding:
    count = rows.count - first
    return LONG_ROWS.found(
        f"Rows {first:,} to {rows.count - 1:,} of {shown(name)} ({count:,} of {rows.count:,}) are {times:.3g} times as "
        "long as the others, and as alike as random numbers are.",
        subjects=[name],
        evidence=(("rows", count), ("of", rows.count), ("first", first), ("times", times), ("threshold", _LONG)),
        remedy="A vocabulary that was enlarged with nn.Embedding's own initialisation (normal, deviation 1) ends like "
        "this. Where the embedding is the output layer too, these tokens win every softmax: draw them with the spread "
        "of the trained rows, or as their mean, and train them.",
    )


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
        if abs(float(np.median(means)) - centre) <= 3 * errors * error or not 0 < near.mean() < 0.5:
            continue
        width = 2 * errors * error
        beside = [int((np.abs(means - centre - way * width) <= width / 2).sum()) + 1 for way in (-1, 1)]
        if near.sum() > _TIMES * math.sqrt(beside[0] * beside[1]) + _FEW:
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


CHECK = Check(kinds=(LONG_ROWS, UNTOUCHED_ROWS, PADDED_VOCABULARY), find=_find)
