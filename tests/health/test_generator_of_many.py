"""What is asked of many tensors side by side is answered as for each by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from inspector.health import generator as single
from inspector.health import generator_of_many as many


def drawn(seed: int, numel: int, std: float) -> NDArray[np.float32]:
    """(48, numel): what initialisers make, scaled, moved, pruned and touched in one place."""
    torch.manual_seed(seed)
    rows = []
    for number in range(48):
        tensor = torch.empty(numel).normal_(0, std)
        match number % 8:
            case 1:
                tensor *= 0.9997
            case 2:
                nn.init.trunc_normal_(tensor, std=std, a=-2 * std, b=2 * std)
            case 3:
                tensor += 1e-4 * std * torch.randn(numel)
            case 4:
                tensor.uniform_(-std, std)
            case 5:
                tensor[::3] = 0
            case 6:
                tensor[number % numel] *= 1.0001
            case 7:
                end = math.erf(math.sqrt(2))
                tensor.uniform_(-end, end).erfinv_().mul_(std * math.sqrt(2))
        rows.append(tensor.numpy())
    return np.stack(rows)


@pytest.mark.parametrize("numel", [16, 40, 128, 400, 2304])
@pytest.mark.parametrize("std", [1.0, 0.02])
def test_many_are_told_as_each_by_itself(numel: int, std: float) -> None:
    values = drawn(numel, numel, std)
    angles = many.pair_angles(values)
    paired = many.in_normal_pairs(angles).tolist()
    assert paired == [single.in_normal_pairs([one]) for one in values]
    for cut in (2.0, 1.0):
        redrawn = many.in_redrawn_pairs(angles, cut).tolist()
        assert redrawn == [single.in_redrawn_pairs([one], cut) for one in values]
    radii = many.on_normal_radii(values, std).tolist()
    assert radii == [single.on_normal_radii([one], std) for one in values]
    cut_off = many.of_truncated_uniform(values, std, 2.0).tolist()
    assert cut_off == [single.of_truncated_uniform([one], std, 2.0) for one in values]
    if numel >= 400:
        # What decay scaled has its angles still, and its radii no more; what moved has neither.
        assert (paired[0], paired[1], paired[3]) == (True, True, False)
        assert (radii[0], radii[1], radii[3]) == (True, False, False)
        assert redrawn[2] and cut_off[7] and not cut_off[0]
