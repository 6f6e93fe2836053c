"""Groups of vectors that lie together: k-means by scikit-learn (Lloyd 1982, started by k-means++)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inspector.errors import UsageError
from inspector.installed import require

MOST = 20
_STARTS = 4


def clusters_of(values: NDArray[np.floating], count: int, seed: int) -> NDArray[np.int64]:
    """(n,): the group of each, from 0, the largest first; the same for the same seed.

    Raises UsageError for a count that means nothing here, MissingLibrary without scikit-learn.
    """
    if not 2 <= count <= min(MOST, len(values)):
        raise UsageError(
            f"{count:,} groups of {len(values):,} points cannot be.", hint=f"Ask for 2 to {min(MOST, len(values))}."
        )
    require("sklearn", "Grouping by k-means")
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    # One thread: sums in another order can move a point that lies between two groups.
    with threadpool_limits(limits=1):
        found = KMeans(n_clusters=count, n_init=_STARTS, random_state=seed).fit_predict(values / largest)
    sizes = np.bincount(found, minlength=count)
    rank = np.empty(count, np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(count)
    ranked: NDArray[np.int64] = rank[found]
    return ranked
