"""Running variances: negative, smaller than eps, huge, unlike their layer; beside healthy and dead channels."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import observe

IDS = ("norm-variance-negative", "norm-variance-tiny", "norm-variance-huge")


def _state(channels: int = 64, norms: int = 3) -> dict[str, torch.Tensor]:
    """Convolutions and batch norms that were trained."""
    torch.manual_seed(0)
    state: dict[str, torch.Tensor] = {}
    for i in range(norms):
        conv, norm = torch.nn.Conv2d(channels, channels, 3, bias=False), torch.nn.BatchNorm2d(channels)
        state |= {f"{2 * i}.{k}": v for k, v in conv.state_dict().items()}
        state |= {f"{2 * i + 1}.{k}": v.clone() for k, v in norm.state_dict().items()}
        state[f"{2 * i + 1}.weight"] += 0.1 * torch.randn(channels)
        state[f"{2 * i + 1}.bias"] += 0.1 * torch.randn(channels)
        state[f"{2 * i + 1}.running_mean"] += torch.randn(channels)
        state[f"{2 * i + 1}.running_var"] *= torch.exp(torch.randn(channels))
        state[f"{2 * i + 1}.num_batches_tracked"] += 100
    return state


def test_variances_spread_over_two_orders_of_magnitude_are_quiet(tmp_path: Path) -> None:
    assert observe(tmp_path, _state(), *IDS) == ()


def test_a_negative_variance_is_an_error_with_its_number(tmp_path: Path) -> None:
    state = _state()
    state["3.running_var"][[4, 9]] = torch.tensor([-0.5, -0.25])
    (found,) = observe(tmp_path, state, *IDS)
    assert (found.id, found.severity) == ("norm-variance-negative", Severity.ERROR)
    assert found.says == "2 of 64 channels of 3.running_var have a negative running variance, down to -0.5."


def test_a_variance_below_eps_amplifies_by_scale_over_its_root(tmp_path: Path) -> None:
    state = _state()
    state["3.running_var"][7] = 0.0
    state["3.weight"][7] = 2.0
    (found,) = observe(tmp_path, state, *IDS)
    assert (found.id, found.severity) == ("norm-variance-tiny", Severity.WARNING)
    # 2 / sqrt(0 + 1e-5) = 632.46
    assert dict(found.evidence)["largest gain"] == pytest.approx(632.4555, rel=1e-5)


def test_a_dead_channel_is_a_note(tmp_path: Path) -> None:
    """Its scale rests, its filter is zero, or a depthwise convolution handed it on."""
    resting = _state()
    resting["3.running_var"][7] = 1e-12
    resting["3.weight"][7] = 1e-5
    zeros = _state()
    zeros["3.running_var"][7] = 0.0
    zeros["2.weight"][7] = 0.0
    depthwise = _state()
    depthwise["3.running_var"][7] = 0.0
    depthwise["2.weight"] = torch.randn(64, 1, 3, 3)
    for state in (resting, zeros, depthwise):
        (found,) = observe(tmp_path, state, *IDS)
        assert (found.id, found.severity) == ("norm-variance-tiny", Severity.NOTICE)


@pytest.mark.parametrize("before", [{}, {"head.weight": torch.randn(1, 64), "head.bias": torch.zeros(1)}])
def test_a_first_convolution_of_one_channel_is_not_depthwise(before: dict[str, torch.Tensor], tmp_path: Path) -> None:
    """Alone, and behind the last layer of another network of the file."""
    state = {**before, **_state()}
    state["0.weight"] = torch.randn(64, 1, 3, 3)
    assert observe(tmp_path, state, *IDS) == ()
    state["1.running_var"][[2, 5, 7]] = 0.0
    (found,) = observe(tmp_path, state, *IDS)
    assert found.severity is Severity.WARNING
    assert found.says.startswith(
        "3 of 64 channels of 1.running_var have a running variance below 1e-05, 3 of them exactly 0, so that eps "
    )


def test_a_huge_variance_is_a_warning_but_pictures_nobody_normalised_a_note(tmp_path: Path) -> None:
    state = _state()
    state["3.running_var"] *= 1e5
    (found,) = observe(tmp_path, state, *IDS)
    assert (found.id, found.severity) == ("norm-variance-huge", Severity.WARNING)
    state = _state()
    state["1.running_var"] *= 1e6
    (found,) = observe(tmp_path, state, *IDS)
    assert found.severity is Severity.NOTICE and "first batch norm" in found.says


def test_one_channel_five_thousand_times_its_layers_median(tmp_path: Path) -> None:
    state = _state()
    state["5.running_var"][1:] = 2.0
    state["5.running_var"][0] = 1e4
    (found,) = observe(tmp_path, state, *IDS)
    assert (found.severity, found.subjects) == (Severity.WARNING, ("5.running_var",))
    assert "1 of 64 channels" in found.says and "5000 times the median" in found.says


def test_a_layer_whose_variances_are_spread_as_widely_is_quiet(tmp_path: Path) -> None:
    state = _state()
    state["5.running_var"] = torch.exp(torch.linspace(-9, 9, 64))
    assert observe(tmp_path, state, *IDS) == ()


def test_findings_group_the_layers(tmp_path: Path) -> None:
    state = _state(norms=6)
    for i in range(6):
        state[f"{2 * i + 1}.running_var"][0] = -1.0
    (found,) = observe(tmp_path, state, *IDS)
    assert len(found.subjects) == 6
    assert "6 of 384 channels of 1.running_var, 3.running_var, 5.running_var and 3 more" in found.says
