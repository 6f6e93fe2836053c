"""Tensors of a run taken together: by module, by role, or each by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from inspector.run.report import BINS, Measure, RunReport, RunTensor

#: Modules are divided as long as there are no more of them.
MOST_MODULES = 24
_ALL = 1 - 1e-12


class By(StrEnum):
    """What makes a group."""

    MODULE = "module"
    ROLE = "role"
    TENSOR = "tensor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Tensors by their places in the report."""

    name: str
    rows: tuple[int, ...]


def groups_of(report: RunReport, by: By) -> tuple[Group, ...]:
    """In the order of their first tensors. Modules are as deep as `MOST_MODULES` allows, the largest divided first."""
    if by is By.MODULE:
        return _modules(report.tensors)
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, tensor in enumerate(report.tensors):
        rows[tensor.name if by is By.TENSOR else str(tensor.role)].append(row)
    return tuple(Group(name=name, rows=tuple(of)) for name, of in rows.items())


def _modules(tensors: Sequence[RunTensor]) -> tuple[Group, ...]:
    paths = [tuple(tensor.name.split(".")[:-1]) for tensor in tensors]
    groups: dict[tuple[str, ...], list[int]] = {(): list(range(len(tensors)))}
    whole: set[tuple[str, ...]] = set()
    while True:
        open_ = [path for path, rows in groups.items() if path not in whole and any(paths[r] != path for r in rows)]
        if not open_:
            break
        path = max(open_, key=lambda one: len(groups[one]))
        inside: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        for row in groups[path]:
            inside[paths[row][: len(path) + 1]].append(row)
        if len(groups) - 1 + len(inside) > MOST_MODULES:
            whole.add(path)
            continue
        del groups[path]
        groups.update(inside)
        # What lies in the module itself is no further divided.
        whole |= {path} & set(inside)
    order = sorted(groups, key=lambda one: groups[one][0])
    return tuple(Group(name=".".join(path) or "(the root)", rows=tuple(groups[path])) for path in order)


def series_of(report: RunReport, group: Group, measure: Measure) -> NDArray[np.float64]:
    """(members,): of the group as one vector, over its tensors that the member has; NaN where nothing is known.

    A distance is not known either where a tensor's is not, as of one with NaN.
    """
    rows = list(group.rows)
    own = report.series(measure)[rows]
    if len(rows) == 1:
        alone: NDArray[np.float64] = own[0].copy()
        return alone
    n = np.array([report.tensors[row].numel for row in rows], np.float64)[:, None]
    if measure in (Measure.MOVED, Measure.FROM_FIRST, Measure.FROM_LAST):
        return _distance(report, rows, own)
    if measure in (Measure.ZERO_ROWS, Measure.NOT_FINITE):
        return _sum(own)
    if measure in (Measure.MINIMUM, Measure.MAXIMUM):
        best = np.fmin if measure is Measure.MINIMUM else np.fmax
        found: NDArray[np.float64] = best.reduce(own, axis=0)
        return found
    if measure is Measure.UPDATE:
        return _update(report, rows, n)
    if measure is Measure.RMS:
        return np.sqrt(_mean(own**2, n))
    if measure is Measure.STD:
        mean = report.series(Measure.MEAN)[rows]
        middle = _mean(mean, n)
        return np.sqrt(_mean(own**2 + (mean - middle) ** 2, n))
    return _mean(own, n)


def _update(report: RunReport, rows: list[int], n: NDArray[np.float64]) -> NDArray[np.float64]:
    """||now - before|| / ||before||, over the tensors of which both are known."""
    moved = report.series(Measure.MOVED)[rows]
    size = np.full_like(moved, np.nan)
    size[:, 1:] = report.series(Measure.RMS)[rows][:, :-1] * np.sqrt(n)
    size[np.isnan(moved)] = np.nan
    whole = _distance(report, rows, moved)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: NDArray[np.float64] = whole / _root(size**2)
    # Nothing that stays nothing has not moved.
    ratio[whole == 0] = 0.0
    return ratio


def _distance(report: RunReport, rows: list[int], own: NDArray[np.float64]) -> NDArray[np.float64]:
    """The length of all of them together."""
    ever = np.logical_not(np.isnan(own).all(axis=1))
    has = np.logical_not(np.isnan(report.series(Measure.NOT_FINITE)[rows]))
    unknown = (np.isnan(own) & has)[ever].any(axis=0)
    found: NDArray[np.float64] = np.where(unknown, np.nan, _root(own**2))
    return found


def distance_from_first(report: RunReport, group: Group) -> NDArray[np.float64]:
    """(members,): ||now - first|| / ||first||; NaN where the first is nothing but zeros."""
    return _from_end(report, group, Measure.FROM_FIRST, 0)


def distance_from_last(report: RunReport, group: Group) -> NDArray[np.float64]:
    """(members,): ||last - now|| / ||last||; NaN where the last is nothing but zeros."""
    return _from_end(report, group, Measure.FROM_LAST, -1)


def _from_end(report: RunReport, group: Group, measure: Measure, at: int) -> NDArray[np.float64]:
    size = np.array([report.series(Measure.RMS)[row, at] ** 2 * report.tensors[row].numel for row in group.rows])
    norm = float(np.sqrt(np.nansum(size)))
    found = series_of(report, group, measure)
    return found / norm if norm else np.full_like(found, np.nan)


def histogram_of(report: RunReport, group: Group) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(edges (BINS + 1,), shares (members, BINS)) of the group's numbers over bins that all members have in common.

    A bin of a tensor's own is split between those it lies across, as if its numbers were spread evenly.
    """
    spans, counts = report.histograms()
    ends = spans[list(group.rows)]
    edges = np.linspace(0.0, 1.0, BINS + 1)
    if np.isnan(ends).all():
        return edges, np.zeros((len(report.members), BINS))
    low, high = float(np.nanmin(ends[..., 0])), float(np.nanmax(ends[..., 1]))
    edges = np.linspace(low, high, BINS + 1)
    found = np.zeros((len(report.members), BINS))
    for row in group.rows:
        for at in range(len(report.members)):
            start, end = spans[row, at]
            if not np.isnan(start):
                found[at] += _split(np.linspace(start, end, BINS + 1), counts[row, at], edges)
    total = found.sum(axis=1, keepdims=True)
    return edges, np.divide(found, total, out=found, where=total > 0)


def proposed_row(report: RunReport) -> int:
    """The tensor to look at first: where NaN or infinity began, else the matrix or kernel that went furthest from its
    beginning, by its norm there."""
    bad = report.series(Measure.NOT_FINITE) > 0
    if bad.any():
        # By member first, then in the file's order.
        at = int(np.flatnonzero(bad.any(axis=0))[0])
        return int(np.flatnonzero(bad[:, at])[0])
    size = report.series(Measure.RMS)[:, 0] * np.sqrt([tensor.numel for tensor in report.tensors])
    with np.errstate(divide="ignore", invalid="ignore"):
        far = report.series(Measure.FROM_FIRST)[:, -1] / size
    fit = [tensor.is_learned and len(tensor.shape) > 1 for tensor in report.tensors]
    far = np.where(np.isfinite(far) & np.array(fit), far, -1.0)
    return int(np.argmax(far))


def quantiles_of(
    edges: NDArray[np.float64], shares: NDArray[np.float64], wanted: Sequence[float]
) -> NDArray[np.float64]:
    """(len(wanted), members): where so much of each member's numbers lies below, as if they were spread evenly in each
    bin; NaN for a member without numbers. edges (bins + 1,), shares (members, bins): as `histogram_of` has them."""
    found = np.full((len(wanted), len(shares)), np.nan)
    for at, own in enumerate(shares):
        below = np.concatenate([[0.0], np.cumsum(own)])
        if below[-1] > 0:
            # Of all there is the end of the last bin that holds some, not of the last one.
            found[:, at] = np.interp(np.minimum(wanted, _ALL) * below[-1], below, edges)
    return found


def _split(edges: NDArray[np.float64], counts: NDArray[np.float32], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    below = np.concatenate([[0.0], np.cumsum(counts, dtype=np.float64)])
    found: NDArray[np.float64] = np.diff(np.interp(wanted, edges, below))
    return found


def _sum(own: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.where(np.isnan(own).all(axis=0), np.nan, np.nansum(own, axis=0))
    return found


def _root(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.sqrt(_sum(squares))
    return found


def _mean(own: NDArray[np.float64], n: NDArray[np.float64]) -> NDArray[np.float64]:
    known = np.where(np.isnan(own), 0.0, n).sum(axis=0)
    found: NDArray[np.float64] = np.where(known > 0, np.nansum(own * n, axis=0) / np.maximum(known, 1), np.nan)
    return found
