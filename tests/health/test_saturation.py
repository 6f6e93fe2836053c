"""Clipped weights, and weights of a handful of values."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import layers, number, observe, only

KINDS = ("clipped-values", "few-values")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_clipped_weights(tmp_path: Path, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    weight = torch.randn(128, 128).clamp(-2, 2.5).to(dtype)
    found = only(observe(tmp_path, {"fc.weight": weight}, *KINDS))
    assert (found.id, found.severity) == ("clipped-values", Severity.NOTICE)
    assert number(found, "count") == int(((weight == -2) | (weight == 2.5)).sum())
    assert (number(found, "minimum"), number(found, "maximum")) == (-2.0, 2.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_uniform_and_normal_weights_are_quiet(tmp_path: Path, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    # Half a step of bfloat16 beyond its 204th number here, so that the outermost one stands for a whole step.
    bound = 204.5 * 2**-12
    state = {"a.weight": (torch.rand(256, 256) * 2 - 1) * bound, "b.weight": torch.randn(256, 256)}
    state["c.weight"] = torch.randn(256, 256).clamp(min=0)
    assert observe(tmp_path, {name: weight.to(dtype) for name, weight in state.items()}, *KINDS) == ()


def test_weights_of_eight_bits_stored_as_floats(tmp_path: Path) -> None:
    state = layers(3, 96)
    for name, weight in state.items():
        step = weight.abs().max() / 127
        state[name] = (weight / step).round() * step
    found = only(observe(tmp_path, state, *KINDS))
    assert (found.id, found.severity) == ("few-values", Severity.NOTICE)
    assert number(found, "distinct") == min(len(weight.unique()) for weight in state.values())
    assert number(found, "bits") == 8


def test_rows_of_eight_bits_with_a_scale_each(tmp_path: Path) -> None:
    torch.manual_seed(0)
    weight = torch.randn(16, 2048)
    step = weight.abs().amax(1, keepdim=True) / 127
    found = only(observe(tmp_path, {"fc.weight": (weight / step).round() * step}, *KINDS))
    assert "different values in each row" in found.says
    assert observe(tmp_path, {"fc.weight": weight}, *KINDS) == ()


def test_eight_bit_floats_masks_and_constants_are_quiet(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = {
        "fc.weight": torch.randn(64, 64).to(torch.float8_e4m3fn),
        "attn.mask": torch.ones(64, 64).tril(),
        "one.weight": torch.ones(64, 64),
    }
    assert observe(tmp_path, state, *KINDS) == ()


def test_an_embedding_that_went_through_an_integer_type(tmp_path: Path) -> None:
    torch.manual_seed(0)
    weight = torch.randn(96, 32)
    found = only(observe(tmp_path, {"embed.weight": weight.int().float()}, "whole-numbers", "few-values"))
    assert (found.id, found.severity) == ("whole-numbers", Severity.WARNING)
    assert found.says.startswith("embed.weight holds whole numbers only, ")
    # Ternary ones, codes with their scale, fixed filters and grids of a step are something else.
    codes = {"fc.weight": (weight * 2).round(), "fc.weight_scale": torch.ones(96, 1)}
    for state in (
        {"embed.weight": weight.sign() * (weight.abs() > 0.4)},
        codes,
        {"conv.weight": (torch.randn(30, 1, 5, 5) * 2).round()},
        {"embed.weight": torch.randint(-4, 5, (96, 32)).float()},
        {"embed.weight": weight.int() * 0.25},
    ):
        assert observe(tmp_path, state, "whole-numbers") == ()
