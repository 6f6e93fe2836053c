"""The heat strip of a file: one row per weight tensor, one column per bin of its values.

Each row is divided by its own root mean square. Layers differ in scale by orders of magnitude for good reasons (fan-in,
normalisation after them), so that on a common scale most rows would be one bright line; in units of their own rms the
rows show what differs in kind: normal, uniform (a hard edge at 1.73), heavy-tailed, pruned (a line at zero), constant.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.dtypes import find_dtype
from inspector.weights.counts_of_many import counts_of_many
from inspector.weights.report import Fingerprint, TensorStatistics, WeightsReport

# A normal distribution has 6 in 100,000 elements beyond 4 rms; they are counted in the outermost bins.
REACH = 4.0
SCALE = "each row in units of its own root mean square; values beyond 4 of them are in the outermost bins"


def fingerprint(
    report: WeightsReport, *, bins: int = 64, only: Sequence[str] | None = None, without: Sequence[str] = ()
) -> Fingerprint:
    """Rows: floating tensors with two or more dimensions and at least one finite element, in file order.

    only: names of those that are wanted, in this order. without: names that are left out. A tensor of zeros has no
    scale: all of it is in the bin that begins at zero (bins should be even). Shares are of all elements, so a row adds
    up to less than 1 by its share of NaN and infinity.
    """
    edges = np.linspace(-REACH, REACH, bins + 1)
    left_out = set(without)
    rows = [s for s in report.tensors if _is_weight(s) and s.name not in left_out]
    if only is not None:
        place = {name: n for n, name in enumerate(only)}
        rows = sorted((s for s in rows if s.name in place), key=lambda s: place[s.name])
    return Fingerprint(
        names=tuple(s.name for s in rows),
        edges=tuple(edges.tolist()),
        shares=_shares(rows, edges),
        scale=SCALE,
    )


def _is_weight(statistics: TensorStatistics) -> bool:
    dtype = find_dtype(statistics.numbers_dtype)
    return len(statistics.shape) >= 2 and dtype is not None and dtype.floating and statistics.finite > 0


def _shares(rows: Sequence[TensorStatistics], edges: NDArray[np.float64]) -> tuple[tuple[float, ...], ...]:
    if not rows:
        return ()
    scales = np.array([s.rms if np.isfinite(s.rms) and s.rms > 0 else 1.0 for s in rows])
    reaching = edges * scales[:, None]
    # Whatever lies beyond belongs to the outermost bins.
    reaching[:, 0] = np.minimum(reaching[:, 0], [s.minimum for s in rows])
    reaching[:, -1] = np.maximum(reaching[:, -1], [s.maximum for s in rows])
    shares = counts_of_many(rows, reaching) / np.array([s.numel for s in rows])[:, None]
    return tuple(map(tuple, shares.tolist()))
