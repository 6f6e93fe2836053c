"""Stretches of zeros and repeated stretches inside a weight, as an interrupted download or a bad disk leaves them.

They begin where a page of the disk does, not where a row of the weight does. What is aligned with the rows may have
been made on purpose: pruned filters, rows that fill up a vocabulary, heads that are repeated.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.dtypes import DTYPES
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.axes import is_pruned, is_repeated
from inspector.health.phrases import also, shown
from inspector.health.roles import LAYERS, Role
from inspector.health.subject import Examined, Subject
from inspector.units import human_bytes, human_place
from inspector.weights.report import PAGE, TensorStatistics

ZERO_STRETCH = FindingKind(
    "zero-stretch", Severity.ERROR, "A weight holds a stretch of zeros", explains=("dead-outputs",)
)
REPEATED_STRETCH = FindingKind(
    "repeated-stretch", Severity.ERROR, "A weight holds the same stretch twice", also=(Severity.NOTICE,)
)

_ROLES = (*LAYERS, Role.EMBEDDING, Role.OTHER)
# Zeros are one stretch, not a pattern of many, where so much of all of them lies in it, and so much of the rest is not.
_OF_ZEROS = 0.9
_MOST_ZERO_ELSEWHERE = 0.1
# Less is believed only of what was read again and stands alone: so much of all repeated pages lies in it, so much of it
# is not zero, and so many values are in it.
_LARGE = 1 << 20
_ALONE = 0.5
_MOST_ZERO = 0.5
_LEAST_VALUES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """begin, end: elements, flat in `shape`. of: where the same lies earlier. by_rows: it
    begins and ends where rows do."""

    name: str
    nbytes: int
    begin: int
    end: int
    shape: tuple[int, ...]
    of: int
    by_rows: bool

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


def _find(subject: Subject) -> Iterator[Finding]:
    zeros: list[_Stretch] = []
    copies: dict[Severity, list[_Stretch]] = defaultdict(list)
    columns = subject.columns
    many = subject.among(*_ROLES) & (columns.ndim >= 2) & columns.varied & (columns.distinct > 256)
    # The largest type has 8 bytes.
    holes = columns.zero >= subject.thresholds.zero_nbytes // 8
    for one, t in subject.those(many & (holes | (columns.repeats > 0))):
        if is_pruned(subject, one):
            continue
        zero = _zeroed(subject, one, t)
        # Whole rows are what the checks of rows say.
        if zero is not None and not zero.by_rows:
            zeros.append(zero)
        copy = _repeated(subject, one, t)
        if copy is not None:
            meant = copy.by_rows or is_repeated(one)
            copies[Severity.NOTICE if meant else Severity.ERROR].append(copy)
    if zeros:
        yield _zero_finding(subject, sorted(zeros, key=lambda each: -each.nbytes))
    for severity, found in copies.items():
        yield _copy_finding(subject, severity, sorted(found, key=lambda each: -each.nbytes))


def _zeroed(subject: Subject, one: Examined, t: TensorStatistics) -> _Stretch | None:
    """The longest run of zeros where it is of `zero_nbytes` or more and nearly all the zeros there are, else None."""
    size = DTYPES[t.dtype].itemsize
    least = subject.thresholds.zero_nbytes // size
    if t.zero < least:
        return None
    array = subject.array(one)
    begin, end = _by_pages(t) if array is None else _longest(array.ravel() == 0)
    run, row = end - begin, math.prod(t.shape[1:])
    alone = array is None or run >= _OF_ZEROS * t.zero
    if run < least or not alone or t.zero - run > _MOST_ZERO_ELSEWHERE * t.numel + 2 * PAGE:
        return None
    # By its pages it is known to a page only.
    near = min(begin % row, -begin % row) < PAGE
    by_rows = near if array is None else begin % row == 0 and end % row == 0
    return _Stretch(name=one.name, nbytes=run * size, begin=begin, end=end, shape=t.shape, of=0, by_rows=by_rows)


def _by_pages(t: TensorStatistics) -> tuple[int, int]:
    pages = t.pages
    if not pages.zero_run or pages.zero_run < _OF_ZEROS * pages.zero:
        return 0, 0
    end = (pages.zero_at + pages.zero_run) * PAGE
    return pages.zero_at * PAGE, t.numel if end + PAGE > t.numel else end


def _longest(zero: NDArray[np.bool_]) -> tuple[int, int]:
    edges = np.flatnonzero(np.diff(zero, prepend=False, append=False)).reshape(-1, 2)
    begin, end = edges[int(np.argmax(edges[:, 1] - edges[:, 0]))] if len(edges) else (0, 0)
    return int(begin), int(end)


def _repeated(subject: Subject, one: Examined, t: TensorStatistics) -> _Stretch | None:
    pages, size = t.pages, DTYPES[t.dtype].itemsize
    begin, end = pages.repeated_at * PAGE, (pages.repeated_at + pages.repeated_run) * PAGE
    of, row = pages.repeated_from * PAGE, math.prod(t.shape[1:])
    distance = begin - of
    # A page that is a copy in part lies at both ends, perhaps.
    if not pages.repeated_run or (end - begin + 2 * PAGE) * size <= subject.thresholds.repeated_nbytes:
        return None
    array = subject.array(one)
    if array is None:
        if (end - begin) * size < _LARGE:
            return None
    else:
        flat = array.ravel()
        begin, end = _stretched(flat, begin, end, distance)
        # Whole rows are what the check of rows compares.
        if (distance % row == 0 and end - begin >= row) or (end - begin) * size < subject.thresholds.repeated_nbytes:
            return None
        small = (end - begin) * size < _LARGE
        if small and (pages.repeated_run < _ALONE * pages.repeated or not _is_rich(flat[begin:end])):
            return None
    # Pages copied from rows lie at a distance of whole rows, and channels that were repeated of whole kernels; a page
    # of the disk does so only where these are as long.
    disk = (distance * size) % _LARGE == 0
    kernel = math.prod(t.shape[2:])
    return _Stretch(
        name=one.name,
        nbytes=(end - begin) * size,
        begin=begin,
        end=end,
        shape=t.shape,
        of=begin - distance,
        by_rows=(distance % row == 0 or (kernel > 1 and distance % kernel == 0)) and not disk,
    )


def _stretched(flat: NDArray[np.float64], begin: int, end: int, distance: int) -> tuple[int, int]:
    """From pages to elements: as far as what lies so far apart is the same; (begin, begin) where it is not in them."""
    same = flat[distance:] == flat[: len(flat) - distance]
    if not same[begin - distance : end - distance].all():
        return begin, begin
    unlike = np.flatnonzero(~same) + distance
    before, behind = unlike[unlike < begin], unlike[unlike >= end]
    return int(before[-1]) + 1 if len(before) else distance, int(behind[0]) if len(behind) else len(flat)


def _is_rich(values: NDArray[np.float64]) -> bool:
    """Whether it is numbers, and no pattern of a few."""
    return bool((values == 0).mean() <= _MOST_ZERO) and len(np.unique(values)) >= _LEAST_VALUES


def _zero_finding(subject: Subject, found: Sequence[_Stretch]) -> Finding:
    worst, names = found[0], [each.name for each in found]
    where = "to its end" if worst.end == worst.numel else f"to {human_place(worst.end - 1, worst.shape)}"
    return ZERO_STRETCH.found(
        f"{shown(worst.name)} is zero from {human_place(worst.begin, worst.shape)} {where}, "
        f"{human_bytes(worst.nbytes)} of zeros in a row{also(names)}.",
        subjects=names,
        evidence=(
            *(("nbytes", worst.nbytes), ("begin", worst.begin), ("end", worst.end), ("numel", worst.numel)),
            ("tensors", len(found)),
            ("threshold_nbytes", subject.thresholds.zero_nbytes),
        ),
        remedy="It begins or ends in the middle of a row, as where a download broke off or a disk lost pages: get the "
        "file again and compare its checksum. Block-diagonal matrices of one block may look so too.",
    )


def _copy_finding(subject: Subject, severity: Severity, found: Sequence[_Stretch]) -> Finding:
    worst, names = found[0], [each.name for each in found]
    return REPEATED_STRETCH.found(
        f"{human_bytes(worst.nbytes)} of {shown(worst.name)} from {human_place(worst.begin, worst.shape)} on are the "
        f"same as those from {human_place(worst.of, worst.shape)} on{also(names)}.",
        severity=severity,
        subjects=names,
        evidence=(
            *(("nbytes", worst.nbytes), ("begin", worst.begin), ("copy_of", worst.of)),
            *(("whole_rows", worst.by_rows), ("tensors", len(found))),
            ("threshold_nbytes", subject.thresholds.repeated_nbytes),
        ),
        remedy="Heads repeated for grouped queries, experts and layers widened by copying are like this on purpose."
        if severity is Severity.NOTICE
        else "A part of the file was written twice in place of another: get it again and compare its checksum. Layers "
        "that were widened by copying look so too.",
    )


CHECK = Check(kinds=(ZERO_STRETCH, REPEATED_STRETCH), find=_find)
