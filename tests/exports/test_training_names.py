"""Optimizer state under names, as torch.distributed saves it: a folder or one file, renamed and loaded again."""

from __future__ import annotations

import warnings
from collections import OrderedDict

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.exports.export import export_repaired
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint


def net() -> nn.Module:
    return nn.Sequential(OrderedDict(stem=nn.Linear(3, 4), norm=nn.BatchNorm1d(4), head=nn.Linear(4, 2)))


def step(model: nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(seed))
    optimizer.zero_grad()
    model(x).square().sum().backward()
    optimizer.step()


@pytest.mark.parametrize("folder", [True, False])
def test_names_are_renamed_with_the_weights(folder, tmp_path):
    torch.manual_seed(0)
    model = nn.Module()
    model.backbone = net()
    model.forward = model.backbone.forward
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    step(model, optimizer, 0)
    weights, state = get_state_dict(model, optimizer)
    content = {"model": weights, "optim": state}
    path = tmp_path / "run"
    if folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dcp.save(content, checkpoint_id=path, no_dist=True)
    else:
        torch.save(content, path)
    tensors = tuple(
        TargetTensor(name=n, shape=tuple(t.shape), dtype=str(t.dtype).removeprefix("torch."))
        for n, t in net().state_dict().items()
    )
    goal = Target(label="the net", kind=TargetKind.FILE, tensors=tensors)
    checkpoint = open_checkpoint(path)
    plan = diagnose(checkpoint, goal).plan
    export_repaired(checkpoint, plan, goal, tmp_path / "new.pth", optimizer=True)
    made = torch.load(tmp_path / "new.pth", weights_only=True)
    names = [name for name, _ in net().named_parameters()]
    assert made["optim"]["param_groups"][0]["params"] == names and set(made["optim"]["state"]) == set(names)
    fresh = net()
    fresh.load_state_dict(made["model"])
    again = torch.optim.AdamW(fresh.parameters(), lr=0.01)
    again.load_state_dict(made["optim"])
    step(model, optimizer, 9)
    step(fresh, again, 9)
    theirs = model.backbone.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in fresh.state_dict().items())
