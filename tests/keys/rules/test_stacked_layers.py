"""Layers and experts in one tensor: taken apart and stacked bit for bit, transposed where sizes show it, else asked."""

from __future__ import annotations

import pytest
import torch

from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint

EXPERTS = 3


def numbered(wide=5, seed=0):
    torch.manual_seed(seed)
    net = {"norm.weight": torch.randn(4)}
    for i in range(2):
        for e in range(EXPERTS):
            net[f"layers.{i}.experts.{e}.w1.weight"] = torch.randn(wide, 4)
            net[f"layers.{i}.experts.{e}.w2.weight"] = torch.randn(4, wide)
    return net


def stacked(net, how):
    made = {"norm.weight": net["norm.weight"]}
    for i in range(2):
        for name in ("w1", "w2"):
            rows = torch.stack([net[f"layers.{i}.experts.{e}.{name}.weight"] for e in range(EXPERTS)])
            rows = {"turned": rows.transpose(1, 2).contiguous(), "below": rows.flatten(0, 1)}.get(how, rows)
            made[f"layers.{i}.experts.{name}" + (".weight" if how == "weight" else "")] = rows
    return made


class Loaded:
    def load_state_dict(self, state, strict):
        self.held = state


def shapes(state):
    return {n: tuple(t.shape) for n, t in state.items()}


@pytest.mark.parametrize("how", ["bare", "weight", "turned", "below"])
@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("prefix", ["", "model."])
def test_there_and_back(how, joined, prefix, tmp_path, target_of, monkeypatch):
    net = numbered()
    ours, goal = (net, stacked(net, how)) if joined else (stacked(net, how), net)
    torch.save({prefix + n: t for n, t in ours.items()}, tmp_path / "a.pth")
    checkpoint, target = open_checkpoint(tmp_path / "a.pth"), target_of(shapes(goal))
    plan = diagnose(checkpoint, target).plan
    assert plan.complete and verify_plan(checkpoint, plan, target).holds
    made = apply_plan(checkpoint, plan)
    assert all(torch.equal(made[n], t) for n, t in goal.items())
    model = Loaded()
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": model})
    assert all(torch.equal(model.held[n], t) for n, t in goal.items())


@pytest.mark.parametrize("answer", ["as-it-is", "transposed"])
def test_square_experts_are_asked_about(answer, saved, target_of):
    net = numbered(wide=4)
    checkpoint = saved(stacked(net, "turned" if answer == "transposed" else "bare"))
    target = target_of(shapes(net))
    waiting = diagnose(checkpoint, target).plan
    assert [q.id for q in waiting.ambiguities] == ["stacked-layers"] and not waiting.complete
    plan = diagnose(checkpoint, target, choose={"stacked-layers": answer}).plan
    made = apply_plan(checkpoint, plan)
    assert plan.complete and all(torch.equal(made[n], t) for n, t in net.items())


def test_square_experts_below_each_other_and_gaps_in_the_numbers_are_left_alone(saved, file_of, target_of):
    square = numbered(wide=4)
    assert not diagnose(saved(stacked(square, "below")), target_of(shapes(square))).plan.complete
    net = numbered()
    gap = {n.replace("experts.2", "experts.3"): s for n, s in shapes(net).items()}
    plan = diagnose(file_of(shapes(stacked(net, "bare"))), target_of(gap)).plan
    assert plan is None or not plan.complete


def test_both_sides_alike_are_untouched(file_of, target_of):
    for net in (numbered(), stacked(numbered(), "bare")):
        assert diagnose(file_of(shapes(net)), target_of(shapes(net))).plan.rules == ()


def ensemble(members=3):
    torch.manual_seed(7)
    sizes = {"fc1.weight": (8, 5), "fc1.bias": (8,), "fc2.weight": (2, 8), "fc2.bias": (2,)}
    return {f"models.{i}.{n}": torch.randn(s) for i in range(members) for n, s in sizes.items()}


def stacked_ensemble(net, members=3):
    names = [n.removeprefix("models.0.") for n in net if n.startswith("models.0.")]
    return {n: torch.stack([net[f"models.{i}.{n}"] for i in range(members)]) for n in names}


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("prefix", ["", "module."])
def test_the_networks_of_an_ensemble(joined, prefix, tmp_path, target_of):
    net = ensemble()
    ours, goal = (net, stacked_ensemble(net)) if joined else (stacked_ensemble(net), net)
    torch.save({prefix + n: t for n, t in ours.items()}, tmp_path / "a.pth")
    checkpoint, target = open_checkpoint(tmp_path / "a.pth"), target_of(shapes(goal))
    plan = diagnose(checkpoint, target).plan
    assert plan.complete and verify_plan(checkpoint, plan, target).holds
    made = apply_plan(checkpoint, plan)
    assert all(torch.equal(made[n], t) for n, t in goal.items())


def test_what_is_no_stack_of_whole_networks_is_left(file_of, target_of):
    """Tensors of one more axis by chance, other counts, and a stack of a part of the network."""
    goal = shapes(ensemble())
    whole = shapes(stacked_ensemble(ensemble()))
    for ours in (
        {n: s[1:] + s[:1] for n, s in whole.items()},  # counted by the last axis
        {n: (4, *s[1:]) for n, s in whole.items()},  # four networks
        whole | {"fc1.bias": (8,)},  # one bias for all
        whole | {"gate.weight": (3, 5)},  # and something that mixes them
    ):
        report = diagnose(file_of(ours), target_of(goal))
        assert report.plan is None or not report.plan.complete, ours
