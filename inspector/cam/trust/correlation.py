"""Numbers that compare two maps, or a map with the truth."""

from __future__ import annotations

import torch
from torch import Tensor


def rank_correlation(one: Tensor, other: Tensor) -> float:
    """Spearman's, of two maps of one shape, ties at their mean rank: -1 to 1; NaN where one of them is constant or has
    cells that are not finite."""
    if not bool(torch.isfinite(one).all() and torch.isfinite(other).all()):
        return float("nan")
    a, b = ranks(one), ranks(other)
    a, b = a - a.mean(), b - b.mean()
    below = float(a.norm() * b.norm())
    return float(a @ b) / below if below > 0 else float("nan")


def energy_in_mask(heat: Tensor, mask: Tensor) -> float:
    """Share of the map's sum that lies inside the mask (Wang 2020, arXiv 1910.01279, section 4.3); NaN for no heat.

    heat: (H, W), not negative. mask: (H, W) of bool.
    """
    total = float(heat.double().sum())
    return float(heat.double()[mask].sum()) / total if total > 0 else float("nan")


def points_at(heat: Tensor, mask: Tensor) -> float:
    """1 when the hottest pixel lies inside the mask, 0 when not, the share inside of several equally hot ones.

    The pointing game (Zhang 2016, arXiv 1608.00507, section 4.1) without its tolerance. NaN for a map without heat.
    """
    if not float(heat.max()) > 0:
        return float("nan")
    return float(mask[heat == heat.max()].double().mean())


def ranks(values: Tensor) -> Tensor:
    flat = values.double().flatten()
    _, at, counts = torch.unique(flat, return_inverse=True, return_counts=True)
    last = counts.cumsum(0).double()
    mean: Tensor = last - (counts.double() - 1) / 2
    return mean[at]
