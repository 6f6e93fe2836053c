"""Scales beside quantised weights that cannot be right, beside those of rows that hold nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import number, observe, only

KIND = "quantised-scales"


def _file(layers: int = 3, dtype: torch.dtype = torch.int8, name: str = "weight_scale") -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    state = {}
    for n in range(layers):
        weight = torch.randn(64, 128) * torch.linspace(0.2, 5, 64)[:, None]
        scale = weight.abs().amax(1, keepdim=True) / 127
        state[f"h.{n}.fc.weight"] = (weight / scale).round().to(dtype)
        state[f"h.{n}.fc.{name}"] = scale
    return state


@pytest.mark.parametrize("name", ["weight_scale", "SCB", "weight_scale_inv"])
@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn])
def test_what_one_layer_is_multiplied_by(dtype: torch.dtype, name: str, tmp_path: Path) -> None:
    state = _file(dtype=dtype, name=name)
    assert observe(tmp_path, state, KIND) == ()
    scale = state[f"h.1.fc.{name}"]
    usual = float(scale.quantile(0.5, interpolation="midpoint"))
    for place, value, says in (
        (
            40,
            0.0,
            f"1 of 64 scales of h.1.fc.{name} is 0: what they multiply is 0, though it was not, the first at [40, 0].",
        ),
        (41, -0.01, f"1 of 64 scales of h.1.fc.{name} is negative, which turns the sign of what they multiply, the"),
        (42, 1e4 * usual, f"1 of 64 scales of h.1.fc.{name} is {1e4 * usual:.3g}, 1e+04 times the usual {usual:.3g}, "),
    ):
        state[f"h.1.fc.{name}"] = scale.clone()
        state[f"h.1.fc.{name}"][place] = value
        if value <= 0:
            state[f"h.1.fc.{name}"][50] = float("inf")  # Said elsewhere.
        found = only(observe(tmp_path, state, KIND))
        assert found.severity is Severity.WARNING and found.says.startswith(says)
        assert number(found, "scales") == 1


def test_rows_that_hold_nothing_may_have_a_scale_of_zero(tmp_path: Path) -> None:
    state = _file()
    state["h.1.fc.weight"][40:44] = 0
    state["h.1.fc.weight_scale"][40:44] = 0
    assert observe(tmp_path, state, KIND) == ()


def test_rows_that_differ_by_a_hundred_and_other_schemes_are_quiet(tmp_path: Path) -> None:
    state = _file()
    state["h.1.fc.weight_scale"][3] *= 100
    state["h.1.fc.weight_scale"][4] *= 1e-6
    assert observe(tmp_path, state, KIND) == ()
    # MLX and HQQ keep integers of 32 bits or bytes, and negative scales.
    mlx = {"fc.weight": torch.randint(0, 2**31 - 1, (64, 16)).int(), "fc.scales": torch.randn(64, 4)}
    assert observe(tmp_path, {**mlx, "fc.biases": torch.randn(64, 4)}, KIND) == ()


def test_the_scale_of_a_whole_tensor_is_held_against_the_files(tmp_path: Path) -> None:
    state = {n: t if t.ndim > 1 and "scale" not in n else t.amax() for n, t in _file(9).items()}
    assert observe(tmp_path, state, KIND) == ()
    state["h.4.fc.weight_scale"] = state["h.4.fc.weight_scale"] * 1e4
    assert only(observe(tmp_path, state, KIND)).subjects == ("h.4.fc.weight_scale",)
