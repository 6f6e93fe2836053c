"""Flipped bits and damaged sectors are told from outliers that training makes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import number, observe, only

IDS = ("values-out-of-proportion", "large-weight", "outlier-channels", "half-precision-overflow")


def _weight(rows: int = 64, columns: int = 96) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(rows, columns) * 0.05


def _flip(weight: torch.Tensor, row: int, column: int, bit: int) -> None:
    weight[row, column].view(-1).view(torch.int32).bitwise_xor_(torch.tensor(1 << bit if bit < 31 else 0))


@pytest.mark.parametrize(("bit", "severity"), [(26, Severity.WARNING), (30, Severity.ERROR)])
def test_a_flipped_bit_of_an_exponent(tmp_path: Path, bit: int, severity: Severity) -> None:
    weight = _weight()
    weight[5, 7] = 0.0075
    _flip(weight, 5, 7, bit)
    found = only(observe(tmp_path, {"fc.weight": weight}, *IDS))
    assert (found.id, found.severity, found.subjects) == ("values-out-of-proportion", severity, ("fc.weight",))
    assert found.says.startswith("1 number of fc.weight at [5, 7] is out of all proportion")
    # 1.92 is 0.0075 with one bit flipped, or 0.12 with another, which is more usual here.
    assert number(found, "before") == pytest.approx(0.0075 if bit == 30 else 0.12, rel=1e-6)
    assert number(found, "largest") == pytest.approx(0.0075 * 2.0 ** (2 ** (bit - 23)), rel=1e-6)


def test_a_sector_of_random_bytes(tmp_path: Path) -> None:
    weight = _weight(128, 96)
    # Without an exponent of nothing but ones, which would be NaN.
    words = np.random.default_rng(0).integers(0, 1 << 32, 128, dtype=np.uint32) & np.uint32(0xFF7FFFFF)
    weight.view(-1)[1000:1128] = torch.from_numpy(words.view(np.float32).copy())
    found = only(observe(tmp_path, {"rnn.weight": weight}, *IDS))
    assert (found.id, found.severity) == ("values-out-of-proportion", Severity.ERROR)
    assert re.search(r"all between \[\d+, \d+\] and \[\d+, \d+\], are out of", found.says)
    assert "as in a sector that holds other bytes" in found.says and 40 <= number(found, "numbers") <= 80


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_outliers_of_training_are_quiet(tmp_path: Path, dtype: torch.dtype) -> None:
    weight = _weight()
    weight[3, 4], weight[9, 4] = -1.4, 0.5  # As the single weights of language models: a few times the next.
    assert observe(tmp_path, {"fc.weight": weight.to(dtype)}, IDS[0]) == ()
    weight[:, 5] *= 40
    assert observe(tmp_path, {"fc.weight": weight.to(dtype)}, IDS[0]) == ()
    heavy = torch.from_numpy(np.random.default_rng(0).standard_t(3, (64, 96))).to(dtype)
    assert observe(tmp_path, {"fc.weight": heavy}, IDS[0]) == ()


def test_what_diverged_all_over_and_the_cut_of_trunc_normal_are_no_flipped_bits(tmp_path: Path) -> None:
    weight = _weight()
    weight[3, 4] = -2.0
    assert observe(tmp_path, {"fc.weight": weight}, IDS[0]) == ()
    weight[3, 4], weight[7] = 0.05, 1e4 * weight[7]
    assert observe(tmp_path, {"fc.weight": weight}, IDS[0]) == ()
    torch.manual_seed(1)
    wild = _weight() * torch.exp(4 * torch.randn(64, 96))
    assert observe(tmp_path, {"fc.weight": wild}, IDS[0]) == ()
    assert observe(tmp_path, {"norm.weight": torch.ones(64), "norm.bias": torch.eye(64)[3] * 50}, IDS[0]) == ()


@pytest.mark.parametrize("times", [7.0, 7.8])
def test_a_single_number_of_a_small_matrix_is_believed_a_little_sooner(tmp_path: Path, times: float) -> None:
    """One flipped bit made it of a usual number, and the rest ends smoothly; not two, nor where tails are heavy."""
    weight = _weight()
    weight[5, 7] = times * float(weight.abs().max())
    found = only(observe(tmp_path, {"fc.weight": weight}, IDS[0]))
    assert found.severity is Severity.WARNING and number(found, "numbers") == 1
    weight[9, 9] = -0.99 * weight[5, 7]
    assert observe(tmp_path, {"fc.weight": weight}, IDS[0]) == ()
    weight = _weight() * torch.linspace(0.05, 1, 96).square()
    weight[3, 4] = 2.5 * weight.abs().max()
    weight[5, 7] = times * weight[3, 4].abs()
    assert observe(tmp_path, {"fc.weight": weight}, IDS[0]) == ()
