"""Tensors whose bytes lie the other way round."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import observe, only


def _turned(tensor: torch.Tensor) -> torch.Tensor:
    size = tensor.element_size()
    return tensor.contiguous().view(torch.uint8).view(-1, size).flip(1).contiguous().view(tensor.dtype).view_as(tensor)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_what_is_ordinary_with_its_bytes_turned_is_an_error(tmp_path: Path, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    weight = (torch.randn(96, 48, 3, 3, dtype=torch.float64) / 20).to(dtype)
    assert observe(tmp_path, {"conv.weight": weight}, "byte-swapped") == ()
    found = only(observe(tmp_path, {"conv.weight": _turned(weight)}, "byte-swapped"))
    assert (found.severity, found.subjects) == (Severity.ERROR, ("conv.weight",))
    assert dict(found.evidence)["largest turned"] == pytest.approx(weight.abs().max().item(), rel=0.2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_what_overflowed_or_is_noise_of_all_sizes_is_not(tmp_path: Path, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    overflowed = (torch.randn(64, 64) * 1e5).to(torch.float16).to(dtype)
    broken = torch.randn(64, 64).to(dtype)
    broken[3] = torch.nan
    noise = torch.randint(0, 256, (64, 64 * overflowed.element_size()), dtype=torch.uint8).view(dtype)
    state = {"a.weight": overflowed, "b.weight": broken, "c.weight": noise}
    assert observe(tmp_path, state, "byte-swapped") == ()
