"""Capital letters alone are no other names; where two names would be one, nothing is read so."""

from __future__ import annotations

import re

import pytest
import torch

from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose

WAYS = {"title": str.title, "upper": str.upper, "lower": str.lower, "swapped": str.swapcase}


@pytest.mark.parametrize("way", WAYS)
def test_every_tensor_comes_to_its_own_name(way, saved, target_of, tiny_vit, tmp_path):
    goal = tiny_vit()
    goal = {f"Vit.{name}": shape for name, shape in goal.items()}
    state = {WAYS[way](name): torch.randn(shape) for name, shape in goal.items()}
    plan = diagnose(saved(state), target_of(goal)).plan
    assert plan.complete and not plan.needs_accept
    made = apply_plan(saved(state), plan)
    assert all(torch.equal(made[name], state[WAYS[way](name)]) for name in goal)
    torch.save(state, tmp_path / "net.pth")
    space: dict[str, object] = {}
    exec(python_code(plan, file_name=str(tmp_path / "net.pth")).partition("# `model` is yours")[0], space)
    assert all(torch.equal(space["state"][name], made[name]) for name in goal)


def test_words_that_capitals_part_are_the_targets(saved, target_of):
    goal = {"decoder.attention_rnn.weight_ih": (8, 4), "decoder.attention_rnn.weight_hh": (8, 2), "out.weight": (3, 2)}
    goal |= {"decoder.attention_rnn.bias_ih": (8,), "decoder.attention_rnn.bias_hh": (8,), "out.bias": (3,)}
    names = {name: re.sub("_([a-z])", lambda found: found[1].upper(), name) for name in goal}
    state = {names[name]: torch.randn(shape) for name, shape in goal.items()}
    plan = diagnose(saved(state), target_of(goal)).plan
    assert plan.complete and [rule.id for rule in plan.rules] == ["letter-case"]
    made = apply_plan(saved(state), plan)
    assert all(torch.equal(made[name], state[names[name]]) for name in goal)


def test_names_that_only_capitals_tell_apart_are_not_read_so(file_of, target_of):
    goal = {f"{name}.weight": (4, 4) for name in ("K", "k", "Q", "q")}
    report = diagnose(
        file_of({name.upper() if name[0] in "qQ" else name: s for name, s in goal.items()}), target_of(goal)
    )
    assert report.plan is None or not report.plan.complete
    one_name = {"FC.WEIGHT": (4, 4), "fc.WEIGHT": (4, 4), "Out.Weight": (4, 4), "In.Weight": (4, 4)}
    report = diagnose(file_of(one_name), target_of({f"{n}.weight": (4, 4) for n in ("fc", "out", "in", "fc2")}))
    assert report.plan is None or not report.plan.complete


def test_a_shape_that_differs_is_no_match(file_of, target_of):
    goal = {"fc1.weight": (4, 4), "fc2.weight": (4, 4), "fc3.weight": (4, 4)}
    report = diagnose(file_of({"Fc1.weight": (4, 4), "Fc2.weight": (4, 4), "Fc3.weight": (5, 7)}), target_of(goal))
    assert report.plan is None or not report.plan.complete
