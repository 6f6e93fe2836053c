"""Every number that decides whether something is said, in one table. `inspector.toml` changes them for a project."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Defaults are from the literature that each check names, and were held against healthy networks.

    few: tensors with fewer elements are not tested for how their values are distributed.
    large: a weight of larger magnitude is no working network's.
    """

    few: int = 256
    large: float = 1e3


DEFAULTS = Thresholds()
