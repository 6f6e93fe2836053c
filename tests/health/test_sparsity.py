"""Zeros, and in which pattern."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.nn.utils import prune

from inspector.findings import Severity
from tests.health.observed import number, observe, only


def _linear() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(64, 64)


def _two_of_four(weight: torch.Tensor) -> torch.Tensor:
    groups = weight.reshape(-1, 4).clone()
    groups.scatter_(1, groups.abs().argsort(1)[:, :2], 0)
    return groups.reshape(weight.shape)


def test_two_of_four_is_good_news(tmp_path: Path) -> None:
    found = only(observe(tmp_path, {"fc.weight": _two_of_four(_linear())}, "sparse-weights"))
    assert found.severity is Severity.INFO
    assert found.says == "2,048 of 4,096 weights of fc.weight (50.0 %) are exactly zero, two of every four inputs."


def test_two_of_four_of_a_convolution_lies_along_its_inputs(tmp_path: Path) -> None:
    torch.manual_seed(0)
    weight = _two_of_four(torch.randn(16, 3, 3, 32)).permute(0, 3, 1, 2).contiguous()
    found = only(observe(tmp_path, {"conv.weight": weight}, "sparse-weights"))
    assert dict(found.evidence)["pattern"] == "2:4"


def test_half_zeros_by_chance_are_no_pattern(tmp_path: Path) -> None:
    weight = _linear() * (torch.rand(64, 64) > 0.5)
    found = only(observe(tmp_path, {"fc.weight": weight}, "sparse-weights"))
    assert found.severity is Severity.NOTICE and dict(found.evidence)["pattern"] == "none"
    assert number(found, "zero") == int((weight == 0).sum())


def test_blocks(tmp_path: Path) -> None:
    torch.manual_seed(1)
    keep = (torch.rand(8, 8) > 0.5).repeat_interleave(8, 0).repeat_interleave(8, 1)
    found = only(observe(tmp_path, {"fc.weight": _linear() * keep}, "sparse-weights"))
    assert "in whole blocks of 8 x 8" in found.says


def test_a_mask_beside_the_weight(tmp_path: Path) -> None:
    torch.manual_seed(0)
    layer = nn.Linear(32, 32)
    prune.l1_unstructured(layer, "weight", 0.5)
    state = layer.state_dict()
    assert observe(tmp_path, state, "sparse-weights") == ()
    state["weight_orig"] *= state["weight_mask"]
    assert "a mask beside it" in only(observe(tmp_path, state, "sparse-weights")).says


def test_dense_weights_and_dead_rows_are_quiet(tmp_path: Path) -> None:
    weight = _linear()
    weight[:32] = 0
    weight[32:, :4] = 0
    assert observe(tmp_path, {"a.weight": _linear(), "b.weight": weight}, "sparse-weights") == ()
