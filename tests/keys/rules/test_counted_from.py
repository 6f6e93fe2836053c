"""A whole network counted from 1 is read; what may be a part of a deeper one, or counts some rows only, is not."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose


def moved(name: str, by: int = 1) -> str:
    return re.sub(r"(?<![^.])[0-9]+(?![^.])", lambda found: str(int(found[0]) + by), name)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 1)
        self.layers = nn.ModuleList(
            nn.ModuleDict({"attn": nn.Linear(4, 4), "mlp": nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))})
            for _ in range(12)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(4) for _ in range(3))
        self.head = nn.Linear(4, 5)


def state_of(net: nn.Module) -> dict[str, torch.Tensor]:
    return {name: torch.randn(t.shape) if t.ndim else t for name, t in net.state_dict().items()}


@pytest.mark.parametrize("around", ["", "module."])
@pytest.mark.parametrize("by", [1, -1])
@pytest.mark.parametrize("in_order", [True, False])
def test_every_row_that_moves_alike_is_read(around, by, in_order, saved, target_of, tmp_path):
    state = state_of(Net())
    own = {name: moved(name, 1 if by < 0 else 0) for name in state}
    goal = {own[name]: tuple(t.shape) for name, t in state.items()}
    names = {own[name]: around + moved(own[name], by) for name in state}
    given = {names[own[name]]: t for name, t in state.items()}
    if not in_order:
        given = dict(sorted(given.items()))
    plan = diagnose(saved(given), target_of(goal)).plan
    assert plan.complete and not plan.needs_accept and not plan.ambiguities
    assert "counted-from" in {rule.id for rule in plan.rules}
    made = apply_plan(saved(given), plan)
    assert all(torch.equal(made[name], given[names[name]]) for name in goal)
    torch.save(given, tmp_path / "net.pth")
    space: dict[str, object] = {}
    code = python_code(plan, file_name=str(tmp_path / "net.pth")).partition("# `model` is yours")[0]
    exec(code, space)
    assert all(torch.equal(space["state"][name], made[name]) for name in goal)
    assert len(code) < 2_000


def test_a_head_for_other_classes_does_not_speak_against_it(saved, target_of):
    state = {moved(name): t for name, t in state_of(Net()).items()}
    goal = {name: tuple(t.shape) for name, t in Net().state_dict().items()} | {"head.weight": (7, 4), "head.bias": (7,)}
    plan = diagnose(saved(state), target_of(goal), accept=["head-mismatch"]).plan
    assert not plan.ambiguities and "counted-from" in {rule.id for rule in plan.rules}


def row(place, numbers, shape=(4, 4)):
    return {f"{place}.{n}.weight": shape for n in numbers}


@pytest.mark.parametrize(
    ("ours", "goal"),
    [
        # One row alone.
        (row("layers", (1, 2, 3)), row("layers", (0, 1, 2))),
        # Another one stands still.
        (row("layers", (1, 2, 3)) | row("norms", (0, 1)), row("layers", (0, 1, 2)) | row("norms", (0, 1))),
        # By two: a part of a deeper network.
        (row("layers", (2, 3)) | row("norms", (2, 3)), row("layers", (0, 1)) | row("norms", (0, 1))),
        # One of each: others may be elsewhere.
        (row("tower1.layers", (1,)), row("tower0.layers", (0,))),
        # Listed otherwise than counted.
        (row("layers", (2, 1)) | row("norms", (1, 2)), row("layers", (0, 1)) | row("norms", (0, 1))),
        # One row up, the other down.
        (row("layers", (1, 2)) | row("norms", (0, 1)), row("layers", (0, 1)) | row("norms", (1, 2))),
        # One more in the file.
        (row("layers", (1, 2, 3)) | row("norms", (1, 2)), row("layers", (0, 1)) | row("norms", (0, 1))),
    ],
)
def test_what_is_no_counting_of_the_whole_is_not_read_so(ours, goal, file_of, target_of):
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert plan is None or "counted-from" not in {rule.id for rule in plan.rules}
    assert plan is None or not plan.complete
