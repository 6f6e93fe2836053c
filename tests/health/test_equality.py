"""Two tensors of a file, compared by what was measured, then by their bytes; distances beside numpy's."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.health.equality import Budget, are_equal, distance, likely_copies, may_equal, resemblance
from inspector.readers import open_checkpoint
from inspector.weights.measure import measure_tensor


def _opened(tmp_path: Path, **state: torch.Tensor) -> tuple[Checkpoint, dict[str, TensorInfo]]:
    torch.save(state, tmp_path / "w.pt")
    checkpoint = open_checkpoint(tmp_path / "w.pt")
    return checkpoint, {t.name: t for t in checkpoint.tensors}


def test_statistics_tell_most_apart_and_bytes_the_rest(tmp_path: Path) -> None:
    torch.manual_seed(0)
    a = torch.randn(64, 64)
    b = a.clone()
    b[3, 4] += 1e-3
    checkpoint, tensors = _opened(tmp_path, a=a, same=a.clone(), b=b, turned=a.flip(0).clone())
    measured = {name: measure_tensor(checkpoint, tensor) for name, tensor in tensors.items()}
    assert may_equal(measured["a"], measured["same"]) and not may_equal(measured["a"], measured["b"])
    budget = Budget(1 << 20)
    assert are_equal(checkpoint, tensors["a"], tensors["same"], budget) is True
    assert are_equal(checkpoint, tensors["a"], tensors["turned"], budget) is False
    copies = [[t.name for t in group] for group in likely_copies((tensors[n], measured[n]) for n in tensors)]
    assert all("b" not in group for group in copies) and ["a", "same"] in [group[:2] for group in copies]


def test_a_budget_is_not_exceeded(tmp_path: Path) -> None:
    checkpoint, tensors = _opened(tmp_path, a=torch.ones(100), b=torch.ones(100))
    budget = Budget(799)
    assert are_equal(checkpoint, tensors["a"], tensors["b"], budget) is None
    assert (budget.nbytes, budget.left_out) == (799, ["a"])
    assert resemblance(checkpoint, tensors["a"], tensors["b"], budget) is None
    assert distance([]) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_a_distance_is_that_of_all_numbers_together(tmp_path: Path, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    one, two, far = torch.randn(50, 30).to(dtype), torch.randn(7).to(dtype), torch.randn(50, 30)
    checkpoint, tensors = _opened(tmp_path, one=one, two=two, far=far, near=two.clone())
    budget = Budget(1 << 20)
    pairs = [resemblance(checkpoint, tensors[a], tensors[b], budget) for a, b in (("one", "far"), ("two", "near"))]
    found = distance([pair for pair in pairs if pair is not None])
    x, y, z = (t.to(torch.float32).numpy().astype(np.float64) for t in (one, far, two))
    expected = np.sqrt(((y - x) ** 2).sum() / ((x**2).sum() + (z**2).sum()))
    assert found is not None and found.tensors == 2
    assert found.relative == pytest.approx(expected, rel=1e-12)
    assert pairs[0] is not None and pairs[1] is not None and pairs[1].cosine == pytest.approx(1, abs=1e-12)
    cosine = (x * y).sum() / np.sqrt((x**2).sum() * (y**2).sum())
    assert pairs[0].cosine == pytest.approx(cosine, abs=1e-12)


@pytest.mark.parametrize(("a", "b", "cosine", "relative"), [(0, 0, 1, 0), (0, 1, 0, math.inf), (1, 0, 0, 1)])
def test_zeros_point_nowhere(tmp_path: Path, a: float, b: float, cosine: float, relative: float) -> None:
    checkpoint, tensors = _opened(tmp_path, a=torch.full((9,), float(a)), b=torch.full((9,), float(b)))
    found = resemblance(checkpoint, tensors["a"], tensors["b"], Budget(1 << 20))
    assert found is not None and (found.cosine, found.relative) == (cosine, relative)


def test_nan_everywhere_may_be_equal(tmp_path: Path) -> None:
    nan = torch.full((4,), float("nan"))
    checkpoint, tensors = _opened(tmp_path, a=nan, b=nan.clone())
    a, b = (measure_tensor(checkpoint, tensors[name]) for name in "ab")
    assert may_equal(a, b)
