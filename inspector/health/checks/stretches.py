"""Stretches of zeros and repeated stretches inside a weight, as an interrupted download or a bad disk leaves them.

They begin where a page of the disk does, not where a row of the weight does. What is aligned with the rows may have
been made on purpose: pruned filters, rows that fill up a vocabulary, heads that are repeated.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from inspector.checkpoint.dtypes import DTYPES
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.axes import is_pruned
from inspector.health.listing import bounded
from inspector.health.phrases import also, shown
from inspector.health.roles import Role
from inspector.health.subject import Examined, Subject
from inspector.units import human_bytes
from inspector.weights.report import PAGE, TensorStatistics

ZERO_STRETCH = FindingKind("zero-stretch", Severity.ERROR, "A weight holds a stretch of zeros")
REPEATED_STRETCH = FindingKind(
    "repeated-stretch", Severity.ERROR, "A weight holds the same stretch twice", also=(Severity.NOTICE,)
)

_ROLES = (Role.CONV, Role.DEPTHWISE, Role.TRANSPOSED, Role.LINEAR, Role.EMBEDDING, Role.RECURRENT, Role.OTHER)
# One stretch, not a pattern of many: so much of all zeroed pages lies in it, and so much of the rest is not zero.
_ALONE = 0.9
_MOST_ZERO_ELSEWHERE = 0.1
_REPEATED = re.compile(
    r"(^|[._])(k|v|key|value|kv|qkv)(_proj|_lin)?\d*\.|experts?\.|in_proj|c_attn|query_key_value|wqkv"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """begin, end: elements. of: where the same lies earlier. by_rows: it begins and ends where rows do."""

    name: str
    nbytes: int
    begin: int
    end: int
    numel: int
    of: int
    by_rows: bool


def _find(subject: Subject) -> Iterator[Finding]:
    zeros: list[_Stretch] = []
    copies: dict[Severity, list[_Stretch]] = defaultdict(list)
    for one, t in subject.measured(*_ROLES):
        if len(t.shape) < 2 or t.minimum == t.maximum or t.distinct is not None or is_pruned(subject, one):
            continue
        zero = _zeroed(subject, one, t)
        # Whole rows are what the checks of rows say.
        if zero is not None and not zero.by_rows:
            zeros.append(zero)
        copy = _repeated(subject, one, t)
        if copy is not None:
            meant = copy.by_rows or _REPEATED.search(one.name)
            copies[Severity.NOTICE if meant else Severity.ERROR].append(copy)
    if zeros:
        yield _zero_finding(subject, sorted(zeros, key=lambda each: -each.nbytes))
    for severity, found in copies.items():
        yield _copy_finding(subject, severity, sorted(found, key=lambda each: -each.nbytes))


def _row(t: TensorStatistics) -> int:
    return math.prod(t.shape[1:])


def _zeroed(subject: Subject, one: Examined, t: TensorStatistics) -> _Stretch | None:
    pages, size = t.pages, DTYPES[t.dtype].itemsize
    # A page that is zero in part lies at both ends of a stretch, perhaps.
    if (pages.zero_run + 2) * PAGE * size <= subject.thresholds.zero_nbytes or not pages.zero_run:
        return None
    if (
        pages.zero_run < _ALONE * pages.zero
        or t.zero - pages.zero_run * PAGE > _MOST_ZERO_ELSEWHERE * t.numel + 2 * PAGE
    ):
        return None
    begin, end = pages.zero_at * PAGE, (pages.zero_at + pages.zero_run) * PAGE
    array = subject.array(one)
    if array is not None:
        filled = np.flatnonzero(array.ravel())
        begin = int(filled[filled < begin].max()) + 1 if (filled < begin).any() else 0
        end = int(filled[filled >= end].min()) if (filled >= end).any() else t.numel
    elif end + PAGE > t.numel:
        end = t.numel
    if (end - begin) * size <= subject.thresholds.zero_nbytes:
        return None
    row = _row(t)
    by_rows = begin % row == 0 and end % row == 0
    if array is None:
        # Known to a page only.
        by_rows = -begin % row < PAGE or begin % row < PAGE
    return _Stretch(
        name=one.name,
        nbytes=(end - begin) * size,
        begin=begin,
        end=end,
        numel=t.numel,
        of=0,
        by_rows=by_rows,
    )


def _repeated(subject: Subject, one: Examined, t: TensorStatistics) -> _Stretch | None:
    pages, size = t.pages, DTYPES[t.dtype].itemsize
    length = pages.repeated_run * PAGE
    if length * size < subject.thresholds.repeated_nbytes:
        return None
    begin, of = pages.repeated_at * PAGE, pages.repeated_from * PAGE
    array = subject.array(one)
    if array is not None:
        flat = array.ravel()
        if not np.array_equal(flat[begin : begin + length], flat[of : of + length]):
            return None
        if (begin - of) % _row(t) == 0 and length >= _row(t):
            # Whole rows, which the check of rows compares.
            return None
    # Pages copied from rows lie at a distance of whole rows; a page of the disk does so only where rows are as long.
    distance, row = begin - of, _row(t)
    disk = (distance * size) % subject.thresholds.repeated_nbytes == 0
    return _Stretch(
        name=one.name,
        nbytes=length * size,
        begin=begin,
        end=begin + length,
        numel=t.numel,
        of=of,
        by_rows=distance % row == 0 and not disk,
    )


def _zero_finding(subject: Subject, found: Sequence[_Stretch]) -> Finding:
    worst, names = found[0], [each.name for each in found]
    where = "to its end" if worst.end == worst.numel else f"to {worst.end:,}"
    return ZERO_STRETCH.found(
        f"{shown(worst.name)} is zero from element {worst.begin:,} {where}, {human_bytes(worst.nbytes)} of zeros in a "
        f"row{also(names)}.",
        subjects=bounded(names),
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
        f"{human_bytes(worst.nbytes)} of {shown(worst.name)} from element {worst.begin:,} on are the same as those "
        f"from {worst.of:,} on{also(names)}.",
        severity=severity,
        subjects=bounded(names),
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
