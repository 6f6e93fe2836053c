"""Statistics of two runs of elements together: shards of a tensor, or all tensors of a block."""

from __future__ import annotations

from inspector.weights.moments import Moments
from inspector.weights.report import TensorStatistics
from inspector.weights.table import add


def merge(a: TensorStatistics, b: TensorStatistics, *, name: str | None = None) -> TensorStatistics:
    """a's elements followed by b's, as one run of shape (a.numel + b.numel,).

    name: a's when not given; path is kept only when both have the same. dtype: "mixed" when they differ, which makes
    histograms treat the cells as intervals. Associative up to float64 rounding. What belongs to one
    tensor alone (rows, pages, the shorter type) is not kept.
    """
    moments = _moments(a).merged(_moments(b))
    std, rms = moments.std_and_rms()
    known = [s for s in (a, b) if s.finite]
    minimum = min((s.minimum for s in known), default=float("nan"))
    maximum = max((s.maximum for s in known), default=float("nan"))
    first = a.first_non_finite
    if first is None and b.first_non_finite is not None:
        first = a.numel + b.first_non_finite
    return TensorStatistics(
        name=a.name if name is None else name,
        path=a.path if a.path == b.path else (),
        shape=(a.numel + b.numel,),
        dtype=a.dtype if a.dtype == b.dtype else "mixed",
        numel=a.numel + b.numel,
        minimum=minimum,
        maximum=maximum,
        mean=moments.mean if known else float("nan"),
        std=std,
        rms=rms,
        nan=a.nan + b.nan,
        infinite=a.infinite + b.infinite,
        zero=a.zero + b.zero,
        first_non_finite=first,
        table=add(a.table, b.table),
        decoding=a.decoding if a.decoding == b.decoding else None,
    )


def _moments(statistics: TensorStatistics) -> Moments:
    n = statistics.finite
    return Moments(n, statistics.mean, statistics.std**2 * n) if n else Moments()
