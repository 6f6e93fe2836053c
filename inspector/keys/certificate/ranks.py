"""Whether two rows of numbers go together channel by channel: by ranks, so that no outlier speaks for all.

Under the hypothesis that one of them is in any other order (or another tensor's, whose channels are nobody's
neighbours), Spearman's coefficient has one distribution whatever the numbers are; nothing is fitted to data.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def ranked(columns: Floats) -> Floats:
    """Ranks of each column, centred and of length one: (channels, columns). A column without order is all zero."""
    columns = columns.reshape(len(columns), -1)
    order = np.argsort(columns, axis=0, kind="stable")
    ranks = np.empty(columns.shape)
    np.put_along_axis(ranks, order, np.arange(len(columns), dtype=np.float64)[:, None], axis=0)
    ranks -= (len(columns) - 1) / 2
    ranks /= max(math.sqrt(len(columns) * (len(columns) ** 2 - 1) / 12), 1e-12)
    # Ties in stable order would make a constant column agree with the order of channels.
    flat = np.ptp(columns, axis=0) <= 1e-9 * np.abs(columns).max(axis=0, initial=0)
    ranks[:, flat] = 0
    return ranks


def fisher(agreement: Floats, channels: int) -> Floats:
    """Fisher's z of coefficients over so many channels, finite also for full agreement."""
    most = 1 - 12 / (channels**3 - channels)  # the largest but one that ranks can have
    return np.asarray(np.arctanh(np.clip(agreement, -most, most)))


def log_chance(agreement: float, channels: int) -> float:
    """Natural logarithm of the chance of at least this agreement between ranks in random order; 0.0 for none.

    An upper bound of the tail of Student's approximation (Kendall and Stuart 1973, 31.19), times ten for what that
    understates far out with few channels, and never below one order in all.
    """
    if agreement <= 0 or channels < 6:
        return 0.0
    r = min(agreement, 1 - 1e-15)
    half = (channels - 2) / 2
    log_beta = math.lgamma(half) + math.lgamma(0.5) - math.lgamma(half + 0.5)
    tail = half * math.log1p(-r * r) - math.log(2 * r * half) - log_beta
    return max(min(0.0, tail + math.log(10)), -math.lgamma(channels + 1))


def carriers(share: Floats) -> float:
    """How many channels carry a sum, as many as were there if all gave the same: (sum|x|)^2 / sum x^2."""
    total = float((share * share).sum())
    return float(np.abs(share).sum()) ** 2 / total if total > 0 else 0.0
