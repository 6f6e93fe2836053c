"""The median of a few numbers, as numpy's to the last bit and without what np.median does besides for each of thousands
of small tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def median(values: NDArray[Any]) -> float:
    """values: (n,), any real type. The mean of the middle two where n is even; NaN of none, and where one is NaN."""
    if not len(values):
        return math.nan
    ordered = np.sort(values)
    # Sorting puts NaN last.
    if ordered.dtype.kind == "f" and np.isnan(ordered[-1]):
        return math.nan
    half = len(ordered) // 2
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2)
