"""Kernels of one sign alone: no trained weights. They are asked about where names were read, and told where not."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint


def _net() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(72, 6)).state_dict()


def _target(target_of, values):
    return target_of({name: tuple(value.shape) for name, value in values.items()})


def _about(values, change):
    """The numbers of kernels changed; norms' and biases' as they are."""
    return {name: change(value) if value.dim() > 1 else value for name, value in values.items()}


ABOUT = {
    "squares": torch.square,
    "mask": lambda value: (value > 0).float(),
    "scales": lambda value: value.abs() + 0.01,
    "below zero": lambda value: -value.abs(),
    "half": lambda value: value.abs().half(),
}


@pytest.mark.parametrize("what", ABOUT)
def test_numbers_of_one_sign_under_an_unknown_level_are_asked_about(what, saved, target_of):
    values = _about(_net(), ABOUT[what])
    checkpoint = saved({f"flatness.{name}": value for name, value in values.items()})
    target = _target(target_of, values)
    plan = diagnose(checkpoint, target).plan
    assert [one.id for one in plan.ambiguities] == ["one-sign"] and not plan.complete
    refused = diagnose(checkpoint, target, choose={"one-sign": "other-numbers"})
    assert refused.plan is None and "They are not the weights." in refused.says
    agreed = diagnose(checkpoint, target, choose={"one-sign": "weights"})
    assert agreed.plan.complete and not any("one-sign" in dict(x.evidence).values() for x in agreed.findings)
    made = apply_plan(checkpoint, agreed.plan)
    assert all(torch.equal(made[name], value) for name, value in values.items())


def test_under_plain_names_it_is_told(saved, target_of):
    values = _about(_net(), torch.square)
    report = diagnose(saved(values), _target(target_of, values))
    (found,) = [x for x in report.findings if "one-sign" in dict(x.evidence).values()]
    assert "2 kernels" in found.says and "0.weight first" in found.says
    assert found.says in report.says


def test_it_is_told_in_the_headline_below_a_key_as_well(tmp_path, target_of):
    values = _about(_net(), torch.square)
    torch.save({"state_dict": values}, tmp_path / "net.pth")
    report = diagnose(open_checkpoint(tmp_path / "net.pth"), _target(target_of, values))
    assert "a plain load fails" in report.says and "But: None of the 2 kernels" in report.says


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value,
        torch.zeros_like,
        torch.ones_like,
        lambda value: value.abs() if value.dim() == 4 else value,
        lambda value: value.abs() if value.dim() == 4 else -value.abs(),
    ],
    ids=["trained", "zeros", "ones", "one of two", "two signs"],
)
@pytest.mark.parametrize("level", ["", "flatness."])
def test_nothing_is_said_of_others(change, level, saved, target_of):
    values = _about(_net(), change)
    report = diagnose(saved({level + name: value for name, value in values.items()}), _target(target_of, values))
    assert report.plan.complete
    assert not any("one-sign" in dict(x.evidence).values() for x in report.findings)


def test_one_kernel_and_small_ones_say_nothing(saved, target_of):
    for net in (nn.Linear(30, 10), nn.Sequential(nn.Linear(7, 9), nn.Linear(9, 7), nn.Linear(7, 9))):
        values = _about(net.state_dict(), torch.abs)
        report = diagnose(saved({f"a.{name}": value for name, value in values.items()}), _target(target_of, values))
        assert report.plan.complete


def test_the_lengths_that_weight_norm_keeps_are_no_kernels(saved, target_of):
    """There are more of them than are looked at, the smallest first, and none is negative."""
    torch.manual_seed(0)
    old, new = nn.Sequential(), nn.Sequential()
    for net, norm in ((old, nn.utils.weight_norm), (new, nn.utils.parametrizations.weight_norm)):
        net.extend(norm(nn.Conv1d(96, 96, 1)) for _ in range(9))
    report = diagnose(saved(new.state_dict()), _target(target_of, old.state_dict()))
    assert report.plan.complete and not report.plan.ambiguities
