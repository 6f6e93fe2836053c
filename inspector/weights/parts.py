"""What stretches of one tensor gave, wherever they were read, and the whole of them: to the last bit what one pass over
the tensor gives, in whatever order they came.

A stretch begins at a leaf (`moments.LEAF`). Counts add, extremes compare, sums of tiles are put together by math.fsum,
and sums of rows and columns are added leaf after leaf, which is how one pass adds them too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from inspector.weights.moments import Moments, moments_of
from inspector.weights.narrower import union
from inspector.weights.page_runs import find_runs
from inspector.weights.report import Pages, Rows, ValueTable
from inspector.weights.row_sums import Leaf, rows_of
from inspector.weights.table import EXACT_DTYPES, cell_of, pack, packed

_MOST_DISTINCT = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What was measured over a run of elements; the fields mean what they mean in `TensorStatistics`."""

    numel: int
    minimum: float
    maximum: float
    mean: float
    std: float
    rms: float
    nan: int
    infinite: int
    zero: int
    first_non_finite: int | None
    table: ValueTable
    rows: Rows | None
    values: bytes
    fits: str
    distinct: int | None
    fours: int
    pages: Pages


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """A stretch of one tensor, from element `first` on.

    moments: of each tile with finite elements: how many, their sum, their spread around its mean. minimum, maximum: of
    the finite ones, infinite without any; whole numbers of integers. first_non_finite: counted from the tensor's
    beginning. codes, counts: (n,), bit patterns or cells in ascending order, and how often. rows: sums of leaves, None
    where none are kept. values: (n,) of short one-dimensional tensors. fits: shorter types that hold all of it. known:
    the different values, None for too many or not counted. marks (pages, 2), blank (pages,): of the full pages.
    """

    first: int
    numel: int
    moments: tuple[tuple[int, float, float], ...]
    minimum: float
    maximum: float
    nan: int
    infinite: int
    zero: int
    fours: int
    first_non_finite: int | None
    codes: NDArray[np.integer]
    counts: NDArray[np.integer]
    rows: tuple[Leaf, ...] | None
    values: NDArray[np.float64]
    fits: tuple[str, ...]
    known: NDArray[np.float64] | None
    marks: NDArray[np.uint32]
    blank: NDArray[np.bool_]


def joined(parts: Iterable[Part]) -> Part:
    """The stretch that they make together, in any order; of two that begin alike one counts.

    Raises ValueError where they do not follow each other without a gap.
    """
    ordered = sorted({part.first: part for part in parts}.values(), key=lambda part: part.first)
    if not ordered or any(a.first + a.numel != b.first for a, b in pairwise(ordered)):
        raise ValueError("the parts do not follow each other")
    if len(ordered) == 1:
        return ordered[0]
    codes, counts = _added(ordered)
    known = ordered[0].known
    for part in ordered[1:]:
        known = union(known, part.known)
    # A tensor without elements has one part; others see some in each.
    fits = tuple(name for name in ordered[0].fits if all(name in part.fits for part in ordered))
    return Part(
        first=ordered[0].first,
        numel=sum(part.numel for part in ordered),
        moments=tuple(tile for part in ordered for tile in part.moments),
        minimum=min(part.minimum for part in ordered),
        maximum=max(part.maximum for part in ordered),
        nan=sum(part.nan for part in ordered),
        infinite=sum(part.infinite for part in ordered),
        zero=sum(part.zero for part in ordered),
        fours=sum(part.fours for part in ordered),
        first_non_finite=next((p.first_non_finite for p in ordered if p.first_non_finite is not None), None),
        codes=codes,
        counts=counts,
        rows=None if ordered[0].rows is None else tuple(leaf for part in ordered for leaf in part.rows or ()),
        values=np.concatenate([part.values for part in ordered]),
        fits=fits,
        known=known,
        marks=np.concatenate([part.marks for part in ordered]),
        blank=np.concatenate([part.blank for part in ordered]),
    )


def numbers_of(part: Part, dtype: str, shape: tuple[int, ...], codes: NDArray[np.float64] | None) -> Numbers:
    """Of a part that is the whole tensor. codes: (256,) or (65536,), the value of each bit pattern of a type of 8 or 16
    bits; None for wider types."""
    moments = moments_of(part.moments)
    if moments.count and part.minimum == part.maximum:
        # Of a constant no rounding is left.
        moments = Moments(moments.count, float(part.minimum), 0.0)
    std, rms = moments.std_and_rms()
    return Numbers(
        numel=part.numel,
        minimum=part.minimum if moments.count else math.nan,
        maximum=part.maximum if moments.count else math.nan,
        mean=moments.mean if moments.count else math.nan,
        std=std,
        rms=rms,
        nan=part.nan,
        infinite=part.infinite,
        zero=part.zero,
        first_non_finite=part.first_non_finite,
        table=_table(part, dtype, codes),
        rows=rows_of(part.rows, shape) if part.rows is not None else None,
        values=part.values.tobytes(),
        fits=next(iter(part.fits), ""),
        distinct=_distinct(part, codes),
        fours=part.fours,
        pages=find_runs(part.marks, part.blank) if len(part.marks) else Pages(),
    )


def _added(parts: list[Part]) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    codes, place = np.unique(np.concatenate([part.codes for part in parts]), return_inverse=True)
    counts = np.zeros(len(codes), np.int64)
    np.add.at(counts, place, np.concatenate([part.counts for part in parts]).astype(np.int64))
    return codes, counts


def _table(part: Part, dtype: str, codes: NDArray[np.float64] | None) -> ValueTable:
    if codes is None:
        return packed(part.codes, part.counts)
    if dtype in EXACT_DTYPES or dtype.startswith("float8"):
        return pack(cell_of(codes[part.codes]), part.counts)
    return packed(part.codes, part.counts, of=dtype)


def _distinct(part: Part, codes: NDArray[np.float64] | None) -> int | None:
    if codes is None:
        return None if part.known is None else len(part.known)
    value = codes[part.codes]
    value = np.unique(value[~np.isnan(value)])
    return len(value) if len(value) <= _MOST_DISTINCT else None
