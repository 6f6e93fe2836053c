"""A slice of square and equally shaped layers as eight libraries write them: truthful answers give the right numbers.

`scripts/fuzz_layouts.py` runs thousands.
"""

from __future__ import annotations

import pytest
import torch

from tests.keys.fuzz.libraries import make, shows_itself
from tests.keys.fuzz.truthful import repair_truthfully

SEEDS = [seed for seed in (f"slice-{i}" for i in range(34)) if shows_itself(make(seed))]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_matrix_and_no_kernel_lies_the_other_way_round(seed, saved):
    told = repair_truthfully(make(seed), saved)
    assert told.wrong == (), told.says


def test_most_are_repaired_or_the_slice_would_prove_nothing(saved):
    assert sum(repair_truthfully(make(seed), saved).complete for seed in SEEDS[:10]) >= 6


def test_the_judge_sees_a_square_matrix_the_other_way_round(saved):
    net = next(n for n in map(make, SEEDS) if "keras" in n.libraries.values() and repair_truthfully(n, saved).complete)
    name = next(n for n, t in net.ours.items() if n.endswith("kernel") and t.dim() == 2 and t.shape[0] == t.shape[1])
    net.ours[name] = net.ours[name].t().contiguous()
    assert repair_truthfully(net, saved).wrong == (name.replace("kernel", "weight"),)
    assert torch.is_tensor(net.ours[name])
