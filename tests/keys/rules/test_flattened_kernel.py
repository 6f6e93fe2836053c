"""A matrix as a kernel over the whole picture: the same answers, where the layer before says how pictures flatten."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint


def shapes(state):
    return {n: tuple(t.shape) for n, t in state.items()}


def flat():
    return nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.Linear(4 * 4, 6), nn.Linear(6, 5))


def convolved():
    return nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.Conv2d(4, 6, 2), nn.Linear(6, 5))


@pytest.mark.parametrize("way", ["to kernel", "to matrix"])
def test_both_ways_give_equal_answers(way, tmp_path, target_of, monkeypatch):
    torch.manual_seed(0)
    ours, other = (flat(), convolved()) if way == "to kernel" else (convolved(), flat())
    torch.save(ours.state_dict(), tmp_path / "a.pth")
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), target_of(shapes(other.state_dict()))
    plan = diagnose(checkpoint, goal).plan
    assert plan.complete and {s.rule for s in plan.steps} == {"", "flattened-kernel"}
    assert verify_plan(checkpoint, plan, goal).holds
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": other})
    assert all(torch.equal(other.state_dict()[n], t) for n, t in apply_plan(checkpoint, plan).items())
    picture = torch.randn(2, 3, 4, 4)

    def answer(model):
        seen = model[0](picture)
        return model[2]((model[1](seen) if isinstance(model[1], nn.Conv2d) else model[1](seen.flatten(1))).flatten(1))

    assert torch.allclose(answer(ours), answer(other), atol=1e-6)


def test_patches_of_the_picture_itself_are_asked_about(tmp_path, target_of):
    torch.manual_seed(0)
    kernel = torch.randn(12, 3, 2, 2)
    # As einops' "(p1 p2 c)" writes patches down.
    matrix = kernel.permute(0, 2, 3, 1).reshape(12, 12).contiguous()
    torch.save({"patch.weight": matrix, "norm.weight": torch.ones(12)}, tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    goal = target_of({"patch.weight": (12, 3, 2, 2), "norm.weight": (12,)})
    waiting = diagnose(checkpoint, goal).plan
    assert not waiting.complete and [q.id for q in waiting.ambiguities] == ["flattened-kernel"]
    plan = diagnose(checkpoint, goal, choose={"flattened-kernel": "channels-last"}).plan
    assert plan.complete and torch.equal(apply_plan(checkpoint, plan)["patch.weight"], kernel)
    assert verify_plan(checkpoint, plan, goal).holds
    first = diagnose(checkpoint, goal, choose={"flattened-kernel": "channels-first"}).plan
    assert torch.equal(apply_plan(checkpoint, first)["patch.weight"], matrix.reshape(12, 3, 2, 2))


@pytest.mark.parametrize(
    "more",
    [
        ({"x.weight": (8, 4, 3, 3)}, {"x.weight": (8, 6, 3, 3)}),  # something else does not fit
        ({"x.weight": (4, 9), "x.bias": (9,)}, {"x.weight": (9, 4), "x.bias": (9,)}),  # matrices are turned
        ({"0.weight": (4, 15)}, {}),  # not as many numbers
    ],
)
def test_only_where_everything_else_fits(more, file_of, target_of):
    ours = {"a.weight": (4, 3, 3, 3), "fc.weight": (5, 16), "0.weight": (4, 16)} | more[0]
    goal = {"a.weight": (4, 3, 3, 3), "fc.weight": (5, 4, 2, 2), "0.weight": (4, 4, 2, 2)} | more[1]
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert plan is None or not plan.complete


def test_both_sides_alike_are_untouched(file_of, target_of):
    for net in (shapes(flat().state_dict()), shapes(convolved().state_dict())):
        assert diagnose(file_of(net), target_of(net)).plan.rules == ()
