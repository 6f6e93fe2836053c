"""Targets that a person's code builds: loaded, held and run in a process of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from inspector.architectures.user_code import target_of_code
from inspector.keys.diagnose import diagnose
from inspector.keys.proofs.own_code import prove_in_code
from inspector.keys.verify import Compared, verify_plan

CODE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3)
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)
    def forward(self, x):
        return self.b(torch.relu(self.a(self.conv(x).mean((2, 3)))))

class Hooked(Net):
    def _load_from_state_dict(self, state, *more):
        super()._load_from_state_dict(state, *more)
    def load_state_dict(self, state, strict=True):
        out = super().load_state_dict(state, strict=strict)
        self.a.weight.data *= 2
        return out

class Words(Net):
    def forward(self, x):
        return self.a(x.sum(7))

build, hooked, words = Net, Hooked, Words
"""


# All but the first test run it in forks of a Python that has torch.
warm = pytest.mark.usefixtures("warm_python")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("own")
    (made / "model.py").write_text(CODE)
    return made


@pytest.fixture(scope="module")
def network(folder):
    space: dict = {}
    exec(CODE, space)
    torch.manual_seed(0)
    return space["Net"]().eval()


@pytest.fixture(scope="module")
def goal_of(folder):
    made = {}

    def make(name):
        if name not in made:
            made[name] = target_of_code(f"code:model.py:{name}", folder=folder)
        return made[name]

    return make


@pytest.fixture
def case(saved, goal_of, network):
    def make(name="build"):
        # Hooked and Words have the same names and shapes.
        goal = replace(goal_of("build"), label=f"code:model.py:{name}")
        checkpoint = saved({f"module.{n}": t.clone() for n, t in network.state_dict().items()})
        return checkpoint, diagnose(checkpoint, goal).plan, goal

    return make


def _found(case, folder, **given):
    return {p.id: p for p in verify_plan(*case, compared=Compared(folder=folder, **given)).proofs}


def test_everything_is_proven_in_the_other_process(case, folder, saved, network):
    given = torch.randn(2, 3, 16, 16)
    with torch.inference_mode():
        pair = saved({"input": given, "output": network(given).clone()})
    reference = saved({n: t.clone() for n, t in network.state_dict().items()})
    found = _found(case(), folder, pair=pair, reference=reference)
    assert all(p.passed for p in found.values()), found
    assert set(found) == {"bijection", "strict-load", "bytes", "values", "held", "forward", "pair", "reference"}
    assert found["strict-load"].says.startswith("Net.load_state_dict(strict=True) accepts all 6 tensors")
    assert found["forward"].says.startswith("Noise of 1x3x224x224 gives 1x4 values, finite")
    assert "bit for bit" in found["pair"].says and "bit for bit" in found["reference"].says


@warm
def test_two_layers_exchanged_load_strictly_and_fail_against_the_pair(case, folder, saved, network):
    given = torch.randn(2, 3, 16, 16)
    with torch.inference_mode():
        pair = saved({"input": given, "output": network(given).clone()})
    checkpoint, plan, goal = case()
    other = {"a.weight": "module.b.weight", "b.weight": "module.a.weight"}
    steps = tuple(replace(s, source=other.get(s.target, s.source)) for s in plan.steps)
    found = _found((checkpoint, replace(plan, steps=steps), goal), folder, pair=pair)
    assert found["strict-load"].passed and found["pair"].passed is False


@warm
def test_a_model_that_changes_tensors_while_loading_is_caught(case, folder):
    found = _found(case("hooked"), folder)
    assert found["strict-load"].passed
    assert found["held"].passed is False and found["held"].says.startswith("a.weight is not what the model holds")


@warm
def test_a_picture_was_only_tried_but_a_shape_was_asked_for(case, folder):
    found = _found(case("words"), folder)
    assert found["forward"].passed is None and "IndexError" in found["forward"].says
    assert _found(case("words"), folder, shape=(1, 3, 8, 8))["forward"].passed is False


@warm
def test_a_state_that_does_not_load_is_its_sentence(folder, network, goal_of):
    goal = goal_of("build")
    state = {n: t for n, t in network.state_dict().items() if n != "b.bias"}
    (proof,) = prove_in_code(state, goal, folder=folder)
    assert proof.id == "strict-load" and proof.passed is False and "b.bias" in proof.says


@warm
def test_code_that_has_gone_fails_in_words(case, tmp_path):
    checkpoint, plan, goal = case()
    strict = _found((checkpoint, plan, goal), tmp_path)["strict-load"]
    assert strict.passed is False and "FileNotFoundError" in strict.says and len(strict.says) < 400
