"""Buffers that a target's own code was seen to hold need no file: told by their numbers, never by their names alone."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from inspector.architectures.code_runner import describe
from inspector.architectures.user_code import Factory, target_described
from inspector.errors import ModelError
from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint

FACTORY = Factory(text="code:model.py:build", where="model.py", name="build", is_file=True)


def waves(*shape):
    count, width = math.prod(shape[:-1]), shape[-1]
    step = torch.exp(torch.arange(0, width, 2).float() * (-math.log(10000.0) / width))
    table = torch.zeros(count, width)
    table[:, 0::2] = torch.sin(torch.arange(count)[:, None] * step)
    table[:, 1::2] = torch.cos(torch.arange(count)[:, None] * step)
    return table.reshape(shape)


LOWER = torch.ones(6, 6).tril()
INFINITE = torch.full((6, 6), float("-inf")).triu(1)
COLOURS = torch.tensor([123.675, 116.28, 103.53]).reshape(3, 1, 1)
HELD = {
    "pe": waves(1, 700, 16),
    "table": waves(20, 1, 12),
    "mask": LOWER,
    "bias": LOWER[None, None],
    "hidden": LOWER.logical_not(),
    "ahead": INFINITE,
    "pixel_mean": COLOURS,
}


class Net(nn.Module):
    def __init__(self, name, value, *, learned=False):
        super().__init__()
        self.fc = nn.Linear(6, 4)
        if learned:
            self.register_parameter(name, nn.Parameter(value.float()))
        else:
            self.register_buffer(name, value)


def planned(folder, name, value, **more):
    model = Net(name, value, **more)
    torch.save({k: v for k, v in model.state_dict().items() if k != name}, folder / "a.pth")
    checkpoint, goal = open_checkpoint(folder / "a.pth"), target_described(describe(model), FACTORY)
    return checkpoint, goal, diagnose(checkpoint, goal).plan


@pytest.mark.parametrize("name", HELD)
def test_what_the_target_was_seen_to_compute_is_filled(name, tmp_path):
    checkpoint, _, plan = planned(tmp_path, name, HELD[name])
    assert plan.complete and not plan.needs_accept
    filled = apply_plan(checkpoint, plan)[name]
    assert filled.shape == HELD[name].shape and torch.equal(filled.float(), HELD[name].float())


LEARNED = {"pe": waves(20, 12), "mask": LOWER, "pixel_mean": COLOURS}


@pytest.mark.parametrize("name", LEARNED)
def test_a_parameter_is_learned_whatever_it_begins_with(name, tmp_path):
    assert planned(tmp_path, name, LEARNED[name], learned=True)[2].missing == (name,)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pe", torch.zeros(20, 12)),  # to be filled from a file
        ("pe", torch.randn(20, 12)),
        ("pe", waves(20, 12) * 0.5),
        ("pe", waves(20, 12).flip(0)),
        ("mask", torch.ones(6, 6)),  # a pruning's
        ("mask", torch.eye(6)),
        ("pixel_mean", torch.zeros(3)),
        ("pixel_std", torch.ones(3)),
        ("pixel_std", torch.tensor([1.0, float("nan"), 1.0])),
        ("running_mean", COLOURS),  # of the data
        ("centres", torch.tensor([0.5, 0.25])),
    ],
)
def test_what_tells_nothing_is_missing(name, value, tmp_path):
    assert planned(tmp_path, name, value)[2].missing == (name,)


def test_a_code_can_say_nothing_else(tmp_path):
    for held in ("constant:1,", "constant:__import__", "computed:../x", "initial", 7):
        with pytest.raises(ModelError, match="no description"):
            target_described({"kind": "Net", "tensors": [["a", [2], "float32", True, held]]}, FACTORY)
