"""Proofs that can fail: each is shown a plan or a state that is wrong in its own way."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torchvision

from inspector.keys.diagnose import diagnose
from inspector.keys.proofs.forward import prove_forward
from inspector.keys.verify import verify_plan
from tests.raw import prove_values


@pytest.fixture
def case(saved, fingerprinted, architecture):
    own = fingerprinted(torchvision.models.resnet18(num_classes=3))
    checkpoint = saved({f"module.{n}": t for n, t in own.items()})
    goal = architecture("resnet18", num_classes=3)
    return checkpoint, diagnose(checkpoint, goal).plan, goal


def test_everything_is_proven_for_a_right_plan(case):
    found = verify_plan(*case)
    assert found.holds
    assert {p.id: p.passed for p in found.proofs} == {
        "bijection": True,
        "strict-load": True,
        "bytes": True,
        "values": True,
        "places": None,  # never trained: its batch norms have nothing to tell
        "forward": True,
        "which-twin": None,
    }
    says = {p.id: p.says for p in found.proofs}
    assert says["bytes"] == "122 tensors bit for bit the file's."
    assert says["bijection"] == "122 tensors on as many places, none twice; 0 filled, 0 left out."


def test_a_plan_that_uses_one_tensor_twice_is_caught_though_it_loads_strictly(case):
    checkpoint, plan, goal = case
    steps = {s.target: s for s in plan.steps}
    twice = replace(steps["layer1.0.conv2.weight"], source=steps["layer1.0.conv1.weight"].source)
    wrong = replace(plan, steps=tuple(twice if s.target == twice.target else s for s in plan.steps))
    proofs = {p.id: p.passed for p in verify_plan(checkpoint, wrong, goal).proofs}
    assert proofs["strict-load"] is True and proofs["bijection"] is False
    assert not verify_plan(checkpoint, wrong, goal).holds


def test_changed_bytes_are_caught(case, monkeypatch):
    from inspector.keys import verify

    real = verify.apply_plan

    def disturbed(*args, **more):
        state = real(*args, **more)
        state["fc.bias"] = state["fc.bias"].nextafter(torch.tensor(9.0))
        return state

    monkeypatch.setattr(verify, "apply_plan", disturbed)
    proofs = {p.id: p for p in verify_plan(*case).proofs}
    assert proofs["bytes"].passed is False and proofs["bytes"].says.startswith("fc.bias does not hold the bytes")


def test_a_plan_that_is_open_fails_with_its_reason(case, saved, fingerprinted, architecture):
    checkpoint, _, _ = case
    goal = architecture("resnet18", num_classes=9)
    found = verify_plan(checkpoint, diagnose(checkpoint, goal).plan, goal)
    assert not found.holds
    assert "head-mismatch must be accepted" in found.proofs[-1].says


def test_without_a_model_names_and_shapes_stand_for_the_strict_load(saved, target_of):
    checkpoint = saved({"module.a.weight": torch.ones(2, 3)})
    goal = target_of({"a.weight": (2, 3)})
    proofs = {p.id: p for p in verify_plan(checkpoint, diagnose(checkpoint, goal).plan, goal).proofs}
    assert proofs["strict-load"].passed is True and "names and shapes agree" in proofs["strict-load"].says
    assert proofs["forward"].passed is None
    names = target_of({"a.weight": None})
    found = verify_plan(checkpoint, diagnose(checkpoint, names).plan, names)
    assert {p.id: p.passed for p in found.proofs}["strict-load"] is None and found.holds


def test_half_precision_is_compared_after_the_cast(saved, fingerprinted, architecture):
    own = fingerprinted(torchvision.models.resnet18(num_classes=3))
    checkpoint = saved({n: t.half() if t.is_floating_point() else t for n, t in own.items()})
    goal = architecture("resnet18", num_classes=3)
    proofs = {p.id: p for p in verify_plan(checkpoint, diagnose(checkpoint, goal).plan, goal).proofs}
    assert proofs["bytes"].passed and "102 of them after the cast" in proofs["bytes"].says


def test_impossible_statistics_fail_and_illness_of_the_file_is_measured():
    good = {"bn.running_var": torch.tensor([0.0, 1.0]), "bn.num_batches_tracked": torch.tensor(3)}
    assert prove_values(good).passed
    bad = prove_values({"bn.running_var": torch.tensor([0.5, -0.25])})
    assert bad.passed is False and "least -0.25" in bad.says
    assert prove_values({"bn.num_batches_tracked": torch.tensor(-1)}).passed is False
    ill = prove_values({"w": torch.tensor([1.0, float("nan"), 2.0, 3.0])})
    assert ill.passed is None and ill.says == "1 of 4 floating-point values are NaN or infinite: w."


def test_a_dead_or_exploding_answer_fails_unless_the_file_itself_is_so(architecture):
    goal = architecture("resnet18", num_classes=3)
    model = torchvision.models.resnet18(num_classes=3).eval()
    state = {n: t.clone() for n, t in model.state_dict().items()}
    with torch.no_grad():
        model.fc.weight.zero_()
        model.fc.bias.zero_()
    assert prove_forward(model, goal, state).passed is False
    assert prove_forward(model, goal, model.state_dict()).passed is None
    with torch.no_grad():
        model.fc.bias.fill_(float("nan"))
    assert prove_forward(model, goal, state).passed is False
    assert prove_forward(model, goal, model.state_dict()).passed is None
