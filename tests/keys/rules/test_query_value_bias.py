"""Biases of query and value, and zeros for the key: joined, taken apart, and refused where the zeros are none."""

from __future__ import annotations

import pytest
import torch

from inspector.errors import KeysDoNotFit
from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.report import used_sources
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint

ACCEPT = ("query-value-bias",)


def apart():
    torch.manual_seed(0)
    state = {"stem.weight": torch.randn(4, 3)}
    for i in range(2):
        names = {"q_bias": (4,), "v_bias": (4,), "qkv.weight": (12, 4), "proj.weight": (4, 4), "proj.bias": (4,)}
        state |= {f"blocks.{i}.attn.{name}": torch.randn(shape) for name, shape in names.items()}
    return state


def joined(state):
    made = {n: t for n, t in state.items() if not n.endswith(("q_bias", "v_bias"))}
    for i in range(2):
        query, value = (state[f"blocks.{i}.attn.{x}_bias"] for x in "qv")
        made[f"blocks.{i}.attn.qkv.bias"] = torch.cat([query, torch.zeros(4), value])
    return made


def shapes(state):
    return {n: tuple(t.shape) for n, t in state.items()}


class Loaded:
    def load_state_dict(self, state, strict):
        self.held = state


@pytest.mark.parametrize("way", ["join", "part"])
@pytest.mark.parametrize("prefix", ["", "module."])
def test_there_and_back(way, prefix, tmp_path, target_of, monkeypatch):
    ours, goal = (apart(), joined(apart())) if way == "join" else (joined(apart()), apart())
    torch.save({prefix + n: t for n, t in ours.items()}, tmp_path / "a.pth")
    checkpoint, target = open_checkpoint(tmp_path / "a.pth"), target_of(shapes(goal))
    waiting = diagnose(checkpoint, target).plan
    assert not waiting.complete and waiting.needs_accept == ACCEPT
    plan = diagnose(checkpoint, target, accept=ACCEPT).plan
    assert plan.complete and sorted(used_sources(plan.steps)) == sorted(prefix + n for n in ours)
    assert verify_plan(checkpoint, plan, target).holds
    made = apply_plan(checkpoint, plan)
    assert set(made) == set(goal) and all(torch.equal(made[n], t) for n, t in goal.items())
    model = Loaded()
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": model})
    assert set(model.held) == set(goal) and all(torch.equal(model.held[n], t) for n, t in goal.items())


def test_a_key_with_a_bias_is_refused_by_its_numbers(tmp_path, target_of, monkeypatch):
    state = joined(apart())
    state["blocks.1.attn.qkv.bias"][5] = 0.25
    torch.save(state, tmp_path / "a.pth")
    checkpoint, target = open_checkpoint(tmp_path / "a.pth"), target_of(shapes(apart()))
    plan = diagnose(checkpoint, target, accept=ACCEPT).plan
    with pytest.raises(KeysDoNotFit, match=r"1 of the 4 numbers 4 to 8 of blocks.1.attn.qkv.bias are not zero"):
        apply_plan(checkpoint, plan)
    assert not verify_plan(checkpoint, plan, target).holds
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="not zero"):
        exec(python_code(plan, file_name="a.pth"), {"model": Loaded()})


def test_a_wrong_middle_is_caught_by_the_proof(saved, target_of):
    from tests.raw import prove_bytes

    checkpoint, target = saved(apart()), target_of(shapes(joined(apart())))
    plan = diagnose(checkpoint, target, accept=ACCEPT).plan
    held = apply_plan(checkpoint, plan)
    assert prove_bytes(checkpoint, plan, held).passed
    held["blocks.0.attn.qkv.bias"][5] = 1.0
    assert prove_bytes(checkpoint, plan, held).passed is False


@pytest.mark.parametrize(
    ("ours", "goal"),
    [
        ({"k_bias": (4,)}, {}),  # the key has one after all
        ({"v_bias": (3,)}, {}),
        ({}, {"qkv.bias": (8,)}),
        ({}, {"query_key_value.bias": (12,)}),
    ],
)
def test_what_is_another_attention_is_left_alone(ours, goal, file_of, target_of):
    own = {"proj.weight": (4, 4), "q_bias": (4,), "v_bias": (4,)} | ours
    there = {"proj.weight": (4, 4)} | (goal or {"qkv.bias": (12,)})
    plan = diagnose(
        file_of({f"a.{n}": s for n, s in own.items()}),
        target_of({f"a.{n}": s for n, s in there.items()}),
        accept=(*ACCEPT, "extra-tensors"),
    ).plan
    assert plan is None or not plan.complete or not any(s.rule == ACCEPT[0] for s in plan.steps)


def test_both_sides_alike_are_untouched(file_of, target_of):
    for net in (shapes(apart()), shapes(joined(apart()))):
        assert diagnose(file_of(net), target_of(net)).plan.rules == ()
