"""The one stretch of zeros inside a weight, to the element: what a lost page of a disk or a broken download leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.dtypes import DTYPES
from inspector.health.axes import is_pruned
from inspector.health.roles import Role
from inspector.health.subject import Examined, Subject
from inspector.weights.report import PAGE, TensorStatistics

ROLES = (Role.CONV, Role.DEPTHWISE, Role.TRANSPOSED, Role.LINEAR, Role.EMBEDDING, Role.RECURRENT, Role.OTHER)
# One stretch, not a pattern of many: so much of all zeros lies in it, and so much of the rest is not zero.
_ALONE = 0.9
_MOST_ZERO_ELSEWHERE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroStretch:
    """begin, end: elements. row: elements of one. by_rows: it begins and ends where rows do."""

    begin: int
    end: int
    row: int
    by_rows: bool

    @property
    def rows(self) -> range:
        """Rows that lie in it whole."""
        return range(-(-self.begin // self.row), self.end // self.row)


def may_have_stretches(subject: Subject, one: Examined, t: TensorStatistics) -> bool:
    """A weight of many values in rows, not pruned."""
    if len(t.shape) < 2 or t.minimum == t.maximum or t.distinct is not None:
        return False
    return one.role in ROLES and not is_pruned(subject, one)


def zero_stretch(subject: Subject, one: Examined, t: TensorStatistics) -> ZeroStretch | None:
    """The longest run of zeros where it is of `zero_nbytes` or more and nearly all the zeros there are, else None."""
    least = subject.thresholds.zero_nbytes // DTYPES[t.dtype].itemsize
    if t.zero < least or not may_have_stretches(subject, one, t):
        return None
    array = subject.array(one)
    found = _by_pages(t) if array is None else _longest(array.ravel() == 0)
    if found is None or found[1] - found[0] < least:
        return None
    begin, end = found
    run, row = end - begin, math.prod(t.shape[1:])
    if array is None:
        # Known to a page only.
        by_rows = -begin % row < PAGE or begin % row < PAGE
    else:
        by_rows = begin % row == 0 and end % row == 0
        if run < _ALONE * t.zero:
            return None
    if t.zero - run > _MOST_ZERO_ELSEWHERE * t.numel + 2 * PAGE:
        return None
    return ZeroStretch(begin=begin, end=end, row=row, by_rows=by_rows)


def _by_pages(t: TensorStatistics) -> tuple[int, int] | None:
    pages = t.pages
    if not pages.zero_run or pages.zero_run < _ALONE * pages.zero:
        return None
    end = (pages.zero_at + pages.zero_run) * PAGE
    return pages.zero_at * PAGE, t.numel if end + PAGE > t.numel else end


def _longest(zero: NDArray[np.bool_]) -> tuple[int, int]:
    edges = np.flatnonzero(np.diff(zero, prepend=False, append=False)).reshape(-1, 2)
    begin, end = edges[int(np.argmax(edges[:, 1] - edges[:, 0]))] if len(edges) else (0, 0)
    return int(begin), int(end)
