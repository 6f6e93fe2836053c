"""Norms whose scales lie around 0 because a difference was saved, and those that store them so."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from inspector.findings import Severity
from tests.health.observed import number, observe, only
from tests.health.steps import steps

KIND = "norm-scales-around-zero"
State = dict[str, torch.Tensor]


def _network() -> nn.Sequential:
    return nn.Sequential(*(nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 32), nn.GELU()) for _ in range(4)))


def _pair(count: int = 20) -> tuple[State, State]:
    """A model and the same trained on."""
    torch.manual_seed(0)
    net = _network()
    steps(net, torch.randn(64, 32), count=5, lr=0.5)
    base = {name: value.clone() for name, value in net.state_dict().items()}
    steps(net, torch.randn(64, 32), count=count, lr=0.1)
    return base, net.state_dict()


def test_the_difference_of_two_checkpoints_is_a_warning(tmp_path: Path) -> None:
    base, tuned = _pair()
    assert observe(tmp_path, tuned, KIND) == ()
    found = only(observe(tmp_path, {name: tuned[name] - base[name] for name in tuned}, KIND))
    assert found.severity is Severity.WARNING
    assert (number(found, "norms"), number(found, "rms") < 0.3) == (4, True)
    assert number(found, "matrices") < 0.1


def _less_one(tuned: State) -> State:
    return {name: value - 1 if name.endswith("0.weight") else value for name, value in tuned.items()}


def test_where_matrices_are_whole_the_scale_may_be_stored_less_one(tmp_path: Path) -> None:
    """As LayerNorm1P does; without a shift, as Gemma's norms do."""
    _, tuned = _pair()
    stored = _less_one(tuned)
    assert only(observe(tmp_path, stored, KIND)).severity is Severity.NOTICE
    assert observe(tmp_path, {n: t for n, t in stored.items() if not n.endswith("0.bias")}, KIND) == ()


@pytest.mark.parametrize("keep", [0, 3])
def test_one_norm_in_order_is_enough(keep: int, tmp_path: Path) -> None:
    """Post-norms that begin at zero have others before and behind them; scales that are small and positive decayed."""
    base, tuned = _pair()
    state = {name: tuned[name] - base[name] for name in tuned}
    state[f"{keep}.0.weight"] = tuned[f"{keep}.0.weight"]
    assert observe(tmp_path, state, KIND) == ()
    decayed = {name: value * 0.1 if name.endswith("0.weight") else value for name, value in tuned.items()}
    assert observe(tmp_path, decayed, KIND) == ()
    begun = {name: torch.zeros_like(value) if ".0." in name else value for name, value in tuned.items()}
    assert observe(tmp_path, begun, KIND) == ()
