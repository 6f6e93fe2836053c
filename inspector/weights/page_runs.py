"""Zeroed and repeated stretches, from the marks of the pages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inspector.weights.report import Pages


def find_runs(marks: NDArray[np.uint32], zero: NDArray[np.bool_]) -> Pages:
    """marks: (pages, 2), see `kernel.Found`. zero: (pages,), which are nothing but zeros.

    Two pages of several values whose bits agree in both marks are taken for equal: chance does that to one pair in
    10^19, and to some of numbers that have only a handful of values.
    """
    count = len(marks)
    run, at = _longest(zero)
    found, came = _copies(marks)
    # Copies that follow each other at one distance are one stretch.
    distance = np.where(found, np.arange(count) - came, 0)
    most = begun = 0
    if found.any():
        same = np.concatenate([[False], found[1:] & found[:-1] & (distance[1:] == distance[:-1])])
        starts = np.flatnonzero(found & ~same)
        lengths = np.diff(np.append(np.flatnonzero(~same), count))[np.searchsorted(np.flatnonzero(~same), starts)]
        longest = int(np.argmax(lengths))
        most, begun = int(lengths[longest]), int(starts[longest])
    return Pages(
        count=count,
        zero=int(zero.sum()),
        zero_run=run,
        zero_at=at,
        repeated=int(found.sum()),
        repeated_run=most,
        repeated_at=begun,
        repeated_from=int(came[begun]) if most else 0,
    )


def _copies(marks: NDArray[np.uint32]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which pages have an equal one before them, and the nearest such."""
    came = np.zeros(len(marks), np.int64)
    found = np.zeros(len(marks), bool)
    # An even number of equal elements leaves nothing of an exclusive or.
    varied = np.flatnonzero(marks[:, 1] != 0)
    both = marks[:, 0].astype(np.uint64) << np.uint64(32) | marks[:, 1]
    ordered = np.sort(both[varied])
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(twice):
        # Of trained weights hardly ever two agree: the long way is for those that do.
        return found, came
    at = np.minimum(np.searchsorted(twice, both[varied]), len(twice) - 1)
    varied = varied[twice[at] == both[varied]]
    order = varied[np.lexsort((varied, both[varied]))]
    same = both[order][1:] == both[order][:-1]
    found[order[1:][same]] = True
    came[order[1:][same]] = order[:-1][same]
    return found, came


def _longest(flags: NDArray[np.bool_]) -> tuple[int, int]:
    """The most True in a row and where they begin."""
    if not flags.any():
        return 0, 0
    edges = np.diff(np.concatenate([[0], flags.astype(np.int8), [0]]))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    longest = int(np.argmax(ends - starts))
    return int(ends[longest] - starts[longest]), int(starts[longest])
