"""Rows, columns and short tensors as arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inspector.weights.report import Rows, TensorStatistics


def row_largest(rows: Rows) -> NDArray[np.float64]:
    """(rows,): the largest magnitude of each, infinite where it holds NaN."""
    return np.frombuffer(rows.largest, np.float32).astype(np.float64)


def row_means(rows: Rows) -> NDArray[np.float64]:
    """(rows,): the mean magnitude of each."""
    return np.frombuffer(rows.total, np.float32) / max(1, rows.length)


def column_means(rows: Rows) -> NDArray[np.float64]:
    """(columns,): the mean magnitude of each, over all rows and the dimensions behind it."""
    each = rows.count * rows.length // max(1, rows.columns)
    return np.frombuffer(rows.across, np.float32) / max(1, each)


def elements(statistics: TensorStatistics) -> NDArray[np.float64]:
    """(n,): the elements of a short one-dimensional tensor; (0,) for all others."""
    return np.frombuffer(statistics.values, np.float64)
