"""How heavy the tail of a layer's spectrum is: p(x) ~ x^-alpha above some x_min (Martin and Mahoney, arXiv 1810.01075).

Fitted as Clauset, Shalizi and Newman do (arXiv 0706.1062): alpha by maximum likelihood (eq. 3.1), x_min where the
Kolmogorov-Smirnov distance of fit and tail is least (section 3.3). What alpha says of a network is contested.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Fits to fewer numbers are unstable, and so are tails of fewer.
FEWEST, _FEWEST_IN_TAIL = 50, 10
_CANDIDATES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLaw:
    """alpha: the exponent; error: its standard error, (alpha - 1) / sqrt(tail). lowest: x_min. tail: numbers from there
    on. distance: Kolmogorov-Smirnov, of the fit to the tail; above 0.1 it is hardly a power law."""

    alpha: float
    error: float
    lowest: float
    tail: int
    distance: float


def fit_power_law(values: NDArray[np.float64]) -> PowerLaw | None:
    """The best fit to positive numbers (n,) in any order; None for fewer than 50 or all alike."""
    ordered = np.sort(values[values > 0])
    if len(ordered) < FEWEST or ordered[0] == ordered[-1]:
        return None
    logs = np.log(ordered)
    # (n,): the sum of the logarithms from each number on.
    sums = np.cumsum(logs[::-1])[::-1]
    starts = np.unique(np.linspace(0, len(ordered) - _FEWEST_IN_TAIL, _CANDIDATES).astype(int))
    best: PowerLaw | None = None
    for start in starts.tolist():
        tail = len(ordered) - start
        excess = float(sums[start] - tail * logs[start])
        if excess <= 0:
            continue
        alpha = 1 + tail / excess
        fitted = 1 - np.exp((1 - alpha) * (logs[start:] - logs[start]))
        steps = np.arange(tail + 1) / tail
        distance = float(max(np.max(np.abs(fitted - steps[:-1])), np.max(np.abs(fitted - steps[1:]))))
        if best is None or distance < best.distance:
            best = PowerLaw(
                alpha=alpha,
                error=(alpha - 1) / tail**0.5,
                lowest=float(ordered[start]),
                tail=tail,
                distance=distance,
            )
    return best
