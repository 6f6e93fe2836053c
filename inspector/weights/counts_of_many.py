"""`counts_between` of thousands of small tensors at once: the same numbers to the last bit, without numpy being called
some thirty times for each.

The cells of all tables lie one behind the other, each with the number of its tensor, and are ordered and cut as
`histogram.py` does with those of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from inspector.weights.report import TensorStatistics
from inspector.weights.table import EXACT_DTYPES, ends_of, is_finite

# Cells that are held at a time: 20 MB of arrays. One tensor has up to 65,536.
_MOST_CELLS = 1 << 17
_CODE_NBYTES = 2

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def counts_of_many(tensors: Sequence[TensorStatistics], edges: Floats) -> Floats:
    """edges: (tensors, edges), ascending in each row. Returns (tensors, edges - 1), see `counts_between`."""
    found = np.zeros((len(tensors), edges.shape[1] - 1))
    for of, exact, places in _lots(tensors):
        found[places] = _counts([tensors[place] for place in places], edges[places], of, exact=exact)
    return found


def _lots(tensors: Sequence[TensorStatistics]) -> Iterator[tuple[str, bool, list[int]]]:
    """(the table's type, whether its cells are points, places of tensors), so many at a time as memory should take."""
    waiting: dict[tuple[str, bool], list[int]] = {}
    cells: dict[tuple[str, bool], int] = {}
    for place, one in enumerate(tensors):
        kind = one.table.of, one.numbers_dtype in EXACT_DTYPES
        waiting.setdefault(kind, []).append(place)
        cells[kind] = cells.get(kind, 0) + len(one.table.codes) // _CODE_NBYTES
        if cells[kind] >= _MOST_CELLS:
            yield *kind, waiting.pop(kind)
            cells[kind] = 0
    for kind, places in waiting.items():
        yield *kind, places


def _counts(tensors: Sequence[TensorStatistics], edges: Floats, of: str, *, exact: bool) -> Floats:
    codes = np.frombuffer(b"".join(one.table.codes for one in tensors), np.uint16)
    counts = np.frombuffer(b"".join(one.table.counts for one in tensors), np.uint64).astype(np.int64)
    owner = np.repeat(np.arange(len(tensors)), [len(one.table.codes) // _CODE_NBYTES for one in tensors])
    order = np.argsort(owner << 18 | _rank(codes), kind="stable")
    order = order[is_finite(codes[order], of)]
    codes, counts, owner = codes[order], counts[order], owner[order]
    low, high = ends_of(codes, of, exact=exact)
    least, most = (np.array([getattr(one, end) for one in tensors], np.float64) for end in ("minimum", "maximum"))
    begin, end = (
        np.searchsorted(owner, np.arange(len(tensors))),
        np.searchsorted(owner, np.arange(len(tensors)), "right"),
    )
    some = np.flatnonzero(end > begin)
    # What was rounded to find its cell may lie beyond float32: the outermost cells reach to it.
    high[end[some] - 1] = np.maximum(high[end[some] - 1], most[some])
    low[begin[some]] = np.minimum(low[begin[some]], least[some])
    low, high = (np.minimum(np.maximum(one, least[owner]), most[owner]) for one in (low, high))
    found = np.zeros((len(tensors), edges.shape[1] - 1))
    if len(some):
        below = _below(low, high, counts, owner, edges, begin)
        found[some] = np.diff(below, axis=1)[some]
    return found


def _rank(codes: NDArray[np.uint16]) -> Ints:
    """Ascending as the values of these codes are: negative ones backwards, 0x0000, 0x8000, the others."""
    wide = codes.astype(np.int64)
    behind = 0x10000 + wide + (wide > 0)
    return np.where(wide < 0x8000, behind, np.where(wide == 0x8000, 0x10001, 0xFFFF - wide))


def _below(low: Floats, high: Floats, counts: Ints, owner: Ints, edges: Floats, begin: Ints) -> Floats:
    """(tensors, edges): elements below each edge; on the last one as well."""
    tensors, width = edges.shape
    first = owner * (width + 1) + _edges_up_to(low, owner, edges)
    begun = np.cumsum(np.bincount(first, minlength=tensors * (width + 1)).reshape(tensors, -1), axis=1)[:, :width]
    last = np.minimum(np.maximum(begun - 1, 0) + begin[:, None], len(low) - 1)
    before = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=before[1:])
    reach = high[last] - low[last]
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = np.where(reach > 0, np.minimum(np.maximum((edges - low[last]) / reach, 0.0), 1.0), 1.0)
    own = (before[last] - before[begin][:, None]).astype(np.float64)
    below = np.where(begun > 0, own + counts[last] * inside, 0.0)
    on = (low == high) & (low == edges[owner, -1])
    below[:, -1] += np.bincount(owner[on], weights=counts[on], minlength=tensors)
    return below


def _edges_up_to(low: Floats, owner: Ints, edges: Floats) -> Ints:
    """(cells,): how many edges of its tensor are not above a cell's lower end.

    Complex numbers are ordered by their real parts first: the edges of all tensors are one ascending row.
    """
    rows, cells = np.empty(edges.shape, np.complex128), np.empty(len(low), np.complex128)
    rows.real, rows.imag = np.arange(len(edges))[:, None], edges
    cells.real, cells.imag = owner, low
    below: NDArray[np.intp] = np.searchsorted(rows.ravel(), cells, side="right") - owner * edges.shape[1]
    return below
