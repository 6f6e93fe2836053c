"""Zeroed and repeated stretches, from the sums of the pages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inspector.weights.report import PAGE, Pages


def find_runs(sums: NDArray[np.float64], spreads: NDArray[np.float64], numel: int) -> Pages:
    """sums, spreads: (pages,) over the finite elements, the last page perhaps short; numel: of the tensor.

    Two pages of several values that agree in both float64 numbers are taken for equal: chance does that to one pair in
    10^12 of trained weights, and to any two of numbers that have only a handful of values.
    """
    count = min(len(sums), numel // PAGE)
    sums, spreads = sums[:count], spreads[:count]
    zero = (sums == 0) & (spreads == 0)
    run, at = _longest(zero)
    found, came = _copies(sums, spreads)
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


def _copies(sums: NDArray[np.float64], spreads: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which pages have an equal one before them, and the nearest such."""
    came = np.zeros(len(sums), np.int64)
    found = np.zeros(len(sums), bool)
    varied = np.flatnonzero((spreads > 0) & np.isfinite(spreads))
    ordered = np.sort(sums[varied])
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(twice):
        # Of trained weights hardly ever two agree: the long way is for those that do.
        return found, came
    at = np.minimum(np.searchsorted(twice, sums[varied]), len(twice) - 1)
    varied = varied[twice[at] == sums[varied]]
    order = varied[np.lexsort((varied, spreads[varied], sums[varied]))]
    same = (sums[order][1:] == sums[order][:-1]) & (spreads[order][1:] == spreads[order][:-1])
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
