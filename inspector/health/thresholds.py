"""Every number that decides whether something is said, in one table. `inspector.toml` changes them for a project."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Defaults are from the literature that each check names, and were held against healthy networks.

    few: tensors with fewer elements are not tested for how their values are distributed.
    large: a weight of larger magnitude is no working network's.
    lowest_scale: of a gradient scaler. farthest_average: of averaged weights from the trained ones, relative L2.
    compared_nbytes: how much is read again to compare two sets of weights, or tensors that may be copies.
    """

    few: int = 256
    large: float = 1e3

    lowest_scale: float = 1.0
    farthest_average: float = 1.0
    compared_nbytes: int = 1 << 30


DEFAULTS = Thresholds()
