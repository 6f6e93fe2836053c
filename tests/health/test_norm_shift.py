"""A shift four scales below zero leaves a ReLU with 3.2e-5 of a normal distribution."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.health.observed import observe

ID = "norm-shift-silences"


def _state(shift: float, channels: int) -> dict[str, torch.Tensor]:
    bias = torch.linspace(-0.4, 0.4, 20)
    bias[:channels] = shift
    return {
        "bn.weight": torch.full((20,), -0.5),
        "bn.bias": bias,
        "bn.running_mean": torch.ones(20),
        "bn.running_var": torch.full((20,), 2.0),
    }


def test_units_shifted_below_four_scales_are_counted(tmp_path: Path) -> None:
    (found,) = observe(tmp_path, _state(-2.001, 3), ID)
    assert found.says.startswith("3 of 20 channels of batch norms (15.0 %) are shifted more than 4 times")
    assert dict(found.evidence)["fires, if normal"] == pytest.approx(3.167e-5, rel=1e-3)


def test_just_above_upwards_and_single_units_are_quiet(tmp_path: Path) -> None:
    assert observe(tmp_path, _state(-1.999, 3), ID) == ()
    assert observe(tmp_path, _state(5.0, 3), ID) == ()
    assert observe(tmp_path, _state(-5.0, 1), ID) == ()


def test_channels_of_norms_that_are_not_named_are_counted_as_well(tmp_path: Path) -> None:
    """Of 69 channels 67 were told: those of norms with few of them were left out of the count, not of the total."""
    torch.manual_seed(0)
    channels, low = {"a": 64, "b": 128, "c": 40, "d": 100}, {"a": 21, "b": 46, "c": 1, "d": 1}
    state = {}
    for name, count in channels.items():
        scale = torch.rand(count) + 0.5
        scale[::3] *= -1
        shift = torch.randn(count) * 0.3
        shift[: low[name]] = -4.01 * scale[: low[name]].abs()
        # As far up, and just not as far down.
        shift[-3:] = torch.stack([4.5 * scale[-3].abs(), -3.99 * scale[-2].abs(), -3.9 * scale[-1].abs()])
        state |= {f"{name}.weight": scale, f"{name}.bias": shift}
        state |= {f"{name}.running_mean": torch.randn(count), f"{name}.running_var": torch.rand(count) + 1}
    own = sum(
        int((state[f"{name}.bias"].double() < -4 * state[f"{name}.weight"].double().abs()).sum()) for name in channels
    )
    assert own == sum(low.values()) == 69
    (found,) = observe(tmp_path, state, ID)
    assert found.says == (
        "69 of 332 channels of batch norms (20.8 %) are shifted more than 4 times their scale below zero, "
        "67 of them in a.bias, b.bias."
    )
    assert found.subjects == ("a.bias", "b.bias")
    facts = dict(found.evidence)
    assert (facts["channels"], facts["of"], facts["in those named"]) == (69, 332, 67)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_as_many_as_the_definition_gives_whatever_the_element_type(dtype: torch.dtype, tmp_path: Path) -> None:
    torch.manual_seed(1)
    scale, shift = torch.rand(500).to(dtype), (-2 * torch.rand(500)).to(dtype)
    state = {
        "bn.weight": scale,
        "bn.bias": shift,
        "bn.running_mean": torch.ones(500),
        "bn.running_var": torch.ones(500),
    }
    (found,) = observe(tmp_path, state, ID)
    assert dict(found.evidence)["channels"] == int((shift.double() < -4 * scale.double().abs()).sum())
