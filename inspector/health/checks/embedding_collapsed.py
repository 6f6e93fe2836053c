"""An embedding whose rows all point one way: its entries can hardly be told apart.

Measured as the mean squared cosine of two rows, which random rows of d numbers have at 1 / d. The mean row is left in:
embeddings of language models share a direction (Gao et al. 2019, 1907.12009; Ethayarajh 2019, 1909.00512), and reach
cosines of 0.3 to 0.6 by it; at 0.99 what is an entry's own is a seventh of its length and less. With the mean removed,
the little noise that is left of a collapsed table would look as various as a healthy one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import also, shown
from inspector.health.roles import Role
from inspector.health.subject import Subject

COLLAPSED = FindingKind("embedding-collapsed", Severity.WARNING, "All rows of an embedding point one way")

_COSINE = 0.99
_LEAST_ROWS, _LEAST_COLUMNS = 16, 16
# Rows that are compared, spread over the table.
_ROWS = 4096
# Rows that hold one scale or two for each channel (conditional batch norm, 1707.00683) lie around 1, and shifts of 0.
_SCALES, _SPREAD, _SHIFT = 0.3, 0.25, 0.5


def _find(subject: Subject) -> Iterator[Finding]:
    found: list[tuple[float, int, str]] = []
    for one, t in subject.measured(Role.EMBEDDING):
        short = len(t.shape) != 2 or t.shape[0] < _LEAST_ROWS or t.shape[1] < _LEAST_COLUMNS
        if short or t.finite < t.numel or t.minimum == t.maximum:
            continue
        array = subject.array(one)
        if array is None:
            continue
        rows = array[:: -(-len(array) // _ROWS)]
        cosine = _mean_cosine(rows)
        if cosine > _COSINE and not _are_scales(rows.mean(axis=0)):
            found.append((cosine, t.shape[0], one.name))
    if not found:
        return
    found.sort(reverse=True)
    cosine, count, name = found[0]
    names = [each for _, _, each in found]
    yield COLLAPSED.found(
        f"The {count:,} rows of {shown(name)} point one way: the cosine of two is {cosine:.5g} in the root mean "
        f"square{also(names)}.",
        subjects=names,
        evidence=(("cosine", cosine), ("rows", count), ("tensors", len(names)), ("threshold", _COSINE)),
        remedy="Whoever looks entries up in it gets nearly the same for all: a loss without negatives, or a learning "
        "rate far too high, brings this about. Train anew from an earlier checkpoint. Harmless where all entries were "
        "made from one and are yet to be trained.",
    )


def _mean_cosine(rows: NDArray[np.float64]) -> float:
    """Root of the mean squared cosine over all pairs of two different rows that are not zero; 0 for fewer than 16."""
    lengths = np.linalg.norm(rows, axis=1)
    alive = rows[lengths > 0] / lengths[lengths > 0, None]
    count = len(alive)
    if count < _LEAST_ROWS:
        return 0.0
    # The squares of all cosines sum up to the squares of the smaller of both products.
    product = alive.T @ alive if alive.shape[1] < count else alive @ alive.T
    return float(np.sqrt(max(0.0, (np.square(product).sum() - count) / (count * (count - 1)))))


def _are_scales(mean: NDArray[np.float64]) -> bool:
    large = mean[np.abs(mean) > _SHIFT]
    return len(large) >= len(mean) / 4 and abs(float(large.mean()) - 1) < _SCALES and float(large.std()) < _SPREAD


CHECK = Check(kinds=(COLLAPSED,), find=_find)
