"""Parts of a network: what may be repaired alone, what is asked, and what only looks like a part."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch
import torchvision

from inspector.errors import KeysDoNotFit
from inspector.keys.apply import apply_plan, load_repaired
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.report import StepKind
from inspector.keys.verify import verify_plan


def without(names, *starts):
    return {k: v for k, v in names.items() if not k.startswith(starts)}


def run(code, state, model):
    """The exported lines with the user's names bound, without a file."""
    opening = "state = torch.load("
    lines = [f"state = given{' ' * 0}" if line.startswith(opening) else line for line in code.splitlines()]
    bound = {"given": dict(state), "model": model}
    exec("\n".join(lines), bound)
    return bound


def test_a_backbone_is_a_part_only_when_asked(shapes, file_of, target_of):
    own = shapes("resnet18")
    file, goal = file_of(without(own, "fc.")), target_of(own)
    report = diagnose(file, goal)
    assert not report.plan.complete and not report.plan.partial
    plan = diagnose(file, goal, partial=True).plan
    assert plan.complete and plan.partial and plan.missing == ("fc.weight", "fc.bias") == plan.stays_initial


def test_the_sentence_says_what_stays(shapes, file_of, target_of):
    own = shapes("resnet18")
    file = file_of({f"module.{k}": v for k, v in without(own, "fc.").items()})
    report = diagnose(file, target_of(own), partial=True)
    assert report.says == (
        '120 of 122 tensors fit once "module." is dropped. Lossless. 2 tensors stay at the initial value, '
        "fc.weight first."
    )
    missing = next(f for f in report.findings if f.id == "missing-tensors")
    assert missing.severity == "warning" and missing.subjects == ("fc.weight", "fc.bias")


def test_a_whole_file_is_whole_also_when_a_part_would_do(shapes, file_of, target_of):
    own = shapes("resnet18")
    asked, plain = (diagnose(file_of(own), target_of(own), partial=p) for p in (True, False))
    assert asked == plain and not asked.plan.partial


def test_the_part_applied_proved_and_not_run(architecture, saved, fingerprinted):
    goal = architecture("resnet18")
    whole = fingerprinted(torchvision.models.resnet18())
    checkpoint = saved(OrderedDict((f"module.{k}", v) for k, v in whole.items() if not k.startswith("fc.")))
    plan = diagnose(checkpoint, goal, partial=True).plan
    state = apply_plan(checkpoint, plan)
    assert set(state) == set(whole) - {"fc.weight", "fc.bias"}
    assert all(torch.equal(state[k], whole[k]) for k in state)
    proofs = {p.id: p for p in verify_plan(checkpoint, plan, goal).proofs}
    assert proofs["strict-load"].passed and "exactly the 2 tensors" in proofs["strict-load"].says
    assert proofs["bijection"].passed and proofs["bytes"].passed
    assert proofs["forward"].passed is None
    with pytest.raises(KeysDoNotFit, match="a part of a model is not run"):
        load_repaired(checkpoint, plan, goal.spec)


def test_the_code_loads_the_part_and_checks_the_list(architecture, saved, fingerprinted):
    goal = architecture("resnet18")
    whole = fingerprinted(torchvision.models.resnet18())
    part = OrderedDict((f"module.{k}", v) for k, v in whole.items() if not k.startswith("fc."))
    code = python_code(diagnose(saved(part), goal, partial=True).plan, file_name="net.pth")
    assert "strict=False" in code and "strict=True" not in code
    model = torchvision.models.resnet18()
    head = model.fc.weight.clone()
    run(code, part, model)
    assert all(torch.equal(v, whole[k]) for k, v in model.state_dict().items() if not k.startswith("fc."))
    assert torch.equal(model.fc.weight, head)
    # Another model lacks more, or has no place for something: the lines say so.
    with pytest.raises(RuntimeError, match="not the one that this was made for"):
        run(code, part, torchvision.models.resnet34())
    headless = torchvision.models.resnet18()
    headless.fc = torch.nn.Identity()
    with pytest.raises(RuntimeError, match="not the one that this was made for"):
        run(code, part, headless)


def test_a_plan_that_lists_too_little_fails_its_proof(architecture, saved, fingerprinted):
    from dataclasses import replace

    goal = architecture("resnet18")
    whole = fingerprinted(torchvision.models.resnet18())
    checkpoint = saved(OrderedDict((k, v) for k, v in whole.items() if not k.startswith("fc.")))
    plan = diagnose(checkpoint, goal, partial=True).plan
    proofs = {p.id: p for p in verify_plan(checkpoint, replace(plan, missing=("fc.weight",)), goal).proofs}
    assert proofs["bijection"].passed is False
    assert proofs["strict-load"].passed is False and "fc.bias" in proofs["strict-load"].says


@pytest.mark.parametrize(
    ("file", "target"),
    [("resnet18", "resnet34"), ("resnet50", "resnet101"), ("resnet34", "resnet18"), ("resnet50", "wide_resnet50_2")],
)
def test_another_depth_or_width_is_no_part(file, target, shapes, file_of, target_of):
    for own in (shapes(file), without(shapes(file), "fc."), {f"net.{k}": v for k, v in shapes(file).items()}):
        report = diagnose(file_of(own), target_of(shapes(target)), partial=True, accept=("extra-tensors",))
        assert report.plan is None or not report.plan.complete


def test_fewer_blocks_are_asked_about_and_the_answer_holds(shapes, file_of, target_of):
    file, goal = file_of(shapes("resnet18")), target_of(shapes("resnet34"))
    (question,) = diagnose(file, goal, partial=True).plan.ambiguities
    assert question.id == "depth" and "network of its own with fewer blocks" in question.question
    refused = diagnose(file, goal, partial=True, choose={"depth": "shallower"})
    assert refused.plan is None and "shallower network" in refused.refusal
    assert diagnose(file, goal, partial=True, choose={"depth": "part"}).plan.complete


def test_frozen_layers_left_out_at_the_bottom_need_no_question(shapes, file_of, target_of):
    own = shapes("vit_b_16")
    top = {k: v for k, v in own.items() if "encoder_layer_" not in k or int(k.split("layer_")[1].split(".")[0]) >= 4}
    plan = diagnose(file_of(top), target_of(own), partial=True).plan
    assert plan.complete and set(plan.missing) == set(own) - set(top)


def test_a_handful_of_equal_names_is_no_part(shapes, file_of, target_of):
    own = shapes("resnet18")
    head = {k: v for k, v in own.items() if k.startswith("fc.")}
    report = diagnose(file_of(head), target_of(own), partial=True)
    assert report.plan is None and "strict=False would load 2 of 102 weights" in report.refusal
    nothing = diagnose(file_of({"a.b": (3, 3)}), target_of(own), partial=True)
    assert nothing.plan is None


def test_two_networks_that_share_names_are_none(shapes, file_of, target_of):
    own = shapes("resnet18")
    shared = {k: v for k, v in own.items() if k.startswith(("conv1", "bn1", "layer1"))}
    other = {f"decoder.block{i}.weight": (7, 7, i + 1) for i in range(40)}
    report = diagnose(file_of(shared | other), target_of(own), partial=True, accept=("extra-tensors",))
    assert report.plan is None and "two networks that share some names" in report.refusal


TOWER = {"conv1.weight": (8, 3, 3, 3), "conv1.bias": (8,), "conv2.weight": (8, 8, 3, 3), "conv2.bias": (8,)}


@pytest.mark.parametrize("prefix", ["", "encoder.", "net.module."])
@pytest.mark.parametrize("towers", [("tower_a", "tower_b"), ("student.net", "teacher.net")])
def test_which_of_two_equal_towers_is_never_guessed(prefix, towers, file_of, target_of):
    goal = target_of({f"{tower}.{k}": v for tower in towers for k, v in TOWER.items()})
    report = diagnose(file_of({prefix + k: v for k, v in TOWER.items()}), goal, partial=True)
    assert report.plan is None or not report.plan.complete


def test_a_tower_by_its_own_name_needs_no_question(file_of, target_of):
    goal = target_of({f"{tower}.{k}": v for tower in ("tower_a", "tower_b") for k, v in TOWER.items()})
    plan = diagnose(file_of({f"tower_b.{k}": v for k, v in TOWER.items()}), goal, partial=True).plan
    assert plan.complete and all(s.source == s.target for s in plan.steps)


@pytest.mark.parametrize("numbers", [(0, 2), (2, 4), (1, 3), (0, 4)])
def test_square_layers_of_a_sequential_are_asked_about_or_by_name(numbers, file_of, target_of):
    def layers(which):
        return {f"{n}.{k}": v for n in which for k, v in {"weight": (8, 8), "bias": (8,)}.items()}

    report = diagnose(file_of(layers(numbers)), target_of(layers((0, 2, 4))), partial=True)
    if report.plan is not None and report.plan.complete:
        # By name alone, with the last of the target in the file: nothing could have moved down.
        assert 4 in numbers and all(s.source == s.target for s in report.plan.steps)


def test_order_proves_nothing_where_something_is_missing(shapes, file_of, target_of):
    own = shapes("resnet18")
    kept = without(own, "fc.")
    renamed = {(f"p{i}" if k.startswith("layer3") else k): v for i, (k, v) in enumerate(kept.items())}
    report = diagnose(file_of(renamed), target_of(own), partial=True, accept=("same-order", "extra-tensors"), choose={})
    (question,) = report.plan.ambiguities
    assert question.id == "leftover" and "p60" in question.question and not report.plan.complete


def test_what_waits_in_a_whole_repair_waits_in_a_part(shapes, file_of, target_of):
    own = without(shapes("resnet18"), "fc.")
    twins = {f"model.{k}": v for k, v in own.items()} | {f"ema.{k}": v for k, v in own.items()}
    report = diagnose(file_of(twins), target_of(shapes("resnet18")), partial=True)
    assert report.plan.ambiguities and not report.plan.complete
    extra = own | {"criterion.weight": (1000,)}
    report = diagnose(file_of(extra), target_of(shapes("resnet18")), partial=True)
    assert report.plan.needs_accept == ("extra-tensors",) and not report.plan.complete
    plan = diagnose(file_of(extra), target_of(shapes("resnet18")), partial=True, accept=("extra-tensors",)).plan
    assert plan.complete and [s.source for s in plan.steps if s.kind is StepKind.DROP] == ["criterion.weight"]


def test_a_rename_with_an_equal_empty_place_is_asked_about(file_of, target_of):
    # Whatever placed it: tower_b is empty and has the same names and shapes below.
    from inspector.keys.draft import Draft
    from inspector.keys.partial import refuse_part
    from inspector.keys.placing.tree import Leaf, grow
    from inspector.keys.report import Cost, Evidence, Step
    from inspector.keys.rules.entry import Link, Move, Questions

    leaves = [Leaf(f"enc.{k}", v) for k, v in TOWER.items()]
    there = {tower: [Leaf(f"{tower}.{k}", v) for k, v in TOWER.items()] for tower in ("tower_a", "tower_b")}
    move = Move("wrapper-segment", "by hand")
    made = Draft(source=grow(leaves), target=grow(there["tower_a"] + there["tower_b"]), missing=there["tower_b"])
    made.placed = [Link(ours, place, (move,)) for ours, place in zip(leaves, there["tower_a"], strict=True)]
    made.steps = [
        Step(
            kind=StepKind.RENAME,
            source=link.source.name,
            target=link.target.name,
            rule=move.rule,
            reason="",
            cost=Cost.LOSSLESS,
            evidence=Evidence.RULE,
        )
        for link in made.placed
    ]
    goal = target_of({leaf.name: leaf.shape for leaf in there["tower_a"] + there["tower_b"]})
    questions = Questions(answers={})
    assert refuse_part(made, goal, leaves, questions) == ""
    assert [question.id for question in questions.open] == ["place"] and "tower_b.conv1" in questions.open[0].question
    assert "does not belong" in refuse_part(made, goal, leaves, Questions(answers={"place": "not-there"}))
    named = Questions(answers={})
    made.placed = [Link(link.source, link.target) for link in made.placed]
    assert refuse_part(made, goal, leaves, named) == "" and not named.open
