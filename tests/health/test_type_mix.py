"""Types that cost without giving, and the mixtures that are meant."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.health.observed import observe

IDS = ("double-precision", "mixed-half-types", "integer-weights")


def _blocks(dtype: torch.dtype, count: int = 3) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {
        f"model.layers.{i}.{part}.weight": torch.randn(8, 8).to(dtype) for i in range(count) for part in ("q", "k", "v")
    }


def test_float64_weights_are_counted_with_those_that_float32_would_hold(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = {"a.weight": torch.randn(8, 8).double(), "b.weight": torch.randn(8, 8, dtype=torch.float64)}
    (found,) = observe(tmp_path, state, *IDS)
    assert found.says == (
        "2 tensors (a.weight, b.weight) are float64, 1.02 kB in all; float32 takes half. "
        "1 tensor of them would not lose a digit."
    )
    assert observe(tmp_path, {k: v.float() for k, v in state.items()}, *IDS) == ()


def test_a_counter_in_float64_is_quiet(tmp_path: Path) -> None:
    assert observe(tmp_path, {"step": torch.tensor(3.0, dtype=torch.float64)}, *IDS) == ()


def test_two_half_types_in_a_block(tmp_path: Path) -> None:
    state = _blocks(torch.bfloat16)
    state["model.layers.1.k.weight"] = state["model.layers.1.k.weight"].half()
    (found,) = observe(tmp_path, state, *IDS)
    assert (found.id, found.subjects) == ("mixed-half-types", ("model.layers.1.k.weight",))
    assert dict(found.evidence) == {"blocks": 1, "float16": 1, "bfloat16": 2}


def test_norms_in_float32_and_parts_in_types_of_their_own_are_quiet(tmp_path: Path) -> None:
    norms = {f"model.layers.{i}.norm.weight": torch.ones(8) for i in range(3)}
    assert observe(tmp_path, _blocks(torch.bfloat16) | norms, *IDS) == ()
    other = {f"vision.layers.{i}.q.weight": torch.randn(8, 8).half() for i in range(3)}
    assert observe(tmp_path, _blocks(torch.bfloat16) | other, *IDS) == ()


def test_a_weight_of_int64(tmp_path: Path) -> None:
    (found,) = observe(tmp_path, {"fc.weight": torch.arange(64).reshape(8, 8), "fc.bias": torch.ones(8)}, *IDS)
    assert (found.id, found.subjects) == ("integer-weights", ("fc.weight",))


def test_codes_with_their_scales_and_tables_of_indices_are_quiet(tmp_path: Path) -> None:
    codes = {"fc.weight": torch.arange(64, dtype=torch.int32).reshape(8, 8), "fc.weight_scale": torch.ones(8)}
    assert observe(tmp_path, codes, *IDS) == ()
    table = {"attn.relative_position_index": torch.arange(64).reshape(8, 8)}
    assert observe(tmp_path, table, *IDS) == ()
