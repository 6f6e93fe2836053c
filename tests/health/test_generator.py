"""The last bits of torch's generator, for every kind of initialiser, and how little a change they show."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from inspector.health.generator import in_normal_pairs, of_truncated_uniform, on_uniform_lattice


def _uniform(n: int, bound: float, seed: int) -> NDArray[np.float32]:
    generator = torch.Generator().manual_seed(seed)
    return torch.empty(n).uniform_(-bound, bound, generator=generator).numpy()


def _normal(n: int, std: float, seed: int) -> NDArray[np.float32]:
    generator = torch.Generator().manual_seed(seed)
    return torch.empty(n).normal_(0, std, generator=generator).numpy()


@pytest.mark.parametrize("bound", [1 / 8, 1 / math.sqrt(27), 0.0441941738, math.sqrt(6 / 100), 1.0])
def test_uniform_numbers_are_on_their_lattice_and_nothing_else_is(bound: float) -> None:
    for seed in range(20):
        values = _uniform(512, bound, seed)
        assert on_uniform_lattice([values], bound)
        assert not on_uniform_lattice([values * np.float32(1 - 1e-6)], bound)
        assert not on_uniform_lattice([values + np.float32(1e-7 * bound)], bound)
        other = np.random.default_rng(seed).uniform(-bound, bound, 512).astype(np.float32)
        assert not on_uniform_lattice([other], bound)


def test_rounded_before_the_bound_is_taken_off() -> None:
    """Where the processor has no fused multiply-add: the product is rounded to float32 first."""
    k = np.random.default_rng(0).integers(0, 1 << 24, 512)
    bound = np.float32(0.17)
    product = (k.astype(np.float32) * np.float32(2.0**-24)) * (bound - -bound)
    assert on_uniform_lattice([product + -bound], float(bound))


@pytest.mark.parametrize("std", [1.0, 0.02, math.sqrt(2 / 576), 0.0123])
def test_normal_numbers_are_pairs_at_any_deviation(std: float) -> None:
    for seed in range(20):
        values = _normal(2048, std, seed)
        assert in_normal_pairs([values])
        assert not in_normal_pairs([values + np.float32(1e-5 * std) * _normal(2048, 1.0, seed + 1)])
        assert not in_normal_pairs([values[8:]])  # Pairs are told by their places.
        assert not in_normal_pairs([np.random.default_rng(seed).normal(0, std, 2048).astype(np.float32)])


def test_a_stretch_that_moved_is_enough() -> None:
    parts = [_normal(4096, 0.02, seed) for seed in range(4)]
    assert in_normal_pairs(parts)
    parts[2] = parts[2] * np.linspace(1, 1.001, 4096, dtype=np.float32)
    assert not in_normal_pairs(parts)


@pytest.mark.parametrize(("std", "cut"), [(0.02, 100.0), (1.0, 2.0), (0.3, 2.0)])
def test_truncated_numbers_of_older_torch(std: float, cut: float) -> None:
    low = math.erf(-cut / math.sqrt(2))
    values = torch.empty(8192)
    values.uniform_(low, -low, generator=torch.Generator().manual_seed(0)).erfinv_().mul_(std * math.sqrt(2))
    assert of_truncated_uniform([values.numpy()], std, cut)
    assert not of_truncated_uniform([values.numpy() * np.float32(1.0001)], std, cut)
    assert not of_truncated_uniform([_normal(8192, std, 0)], std, cut)


def test_truncated_numbers_of_todays_torch_are_pairs() -> None:
    values = torch.empty(128, 128)
    torch.nn.init.trunc_normal_(values, std=0.02, generator=torch.Generator().manual_seed(0))
    today = in_normal_pairs([values.numpy().ravel()])
    assert today or of_truncated_uniform([values.numpy().ravel()], 0.02, 100.0)


def test_too_few_numbers_prove_nothing() -> None:
    assert not on_uniform_lattice([_uniform(16, 0.1, 0)], 0.1)
    assert not in_normal_pairs([_normal(64, 0.1, 0)])
    assert not in_normal_pairs([])
