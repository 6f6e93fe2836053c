"""Order as evidence: what it places, what it refuses, and that it never decides where it cannot tell."""

from __future__ import annotations

import random

import pytest

from inspector.keys.diagnose import diagnose
from inspector.keys.placing.by_order import IN_ORDER, LEAVE_OUT
from inspector.keys.placing.own_order import sorted_by_name
from inspector.keys.report import Evidence

ACCEPT = ("same-order",)


def renamed(names, seed=0):
    """Random module names, leaves and order kept: {new: old}."""
    rng, made = random.Random(seed), {}
    return {
        f"{made.setdefault(n.rpartition('.')[0], f'm{rng.randrange(10**8):08d}')}.{n.rpartition('.')[2]}": n
        for n in names
    }


def moved(plan):
    return {s.source: s.target for s in plan.steps if s.source is not None and s.target is not None}


def evidence(plan, place):
    return next(s.evidence for s in plan.steps if s.target == place)


@pytest.mark.parametrize("name", ["resnet18", "vgg11_bn", "densenet121", "swin_t", "mobilenet_v3_small"])
def test_other_names_in_the_same_order_are_placed_once_accepted(name, shapes, file_of, target_of):
    net = shapes(name)
    truth = renamed(net)
    ours, goal = file_of({new: net[old] for new, old in truth.items()}), target_of(net)
    waiting = diagnose(ours, goal)
    assert not waiting.plan.complete and waiting.plan.needs_accept == ("same-order",)
    assert "No name confirms this" in waiting.says
    plan = diagnose(ours, goal, accept=ACCEPT).plan
    assert plan.complete and moved(plan) == truth and [use.id for use in plan.rules] == ["same-order"]
    counts = dict(plan.certificate)
    assert set(counts) <= {Evidence.UNIQUE_TOKEN, Evidence.ORDER_ONLY} and sum(counts.values()) == len(net)


def test_opaque_names_in_order_are_placed_with_their_counters(shapes, file_of, target_of):
    net = shapes("resnet18")
    truth = {f"p{i:04d}": n for i, n in enumerate(net)}
    plan = diagnose(file_of({new: net[old] for new, old in truth.items()}), target_of(net), accept=ACCEPT).plan
    assert plan.complete and moved(plan) == truth


@pytest.mark.parametrize("name", ["resnet18", "vgg11_bn", "vit_b_16", "squeezenet1_1"])
def test_shuffled_or_sorted_files_are_refused(name, shapes, file_of, target_of):
    net = shapes(name)
    truth = renamed(net)
    new = {key: net[old] for key, old in truth.items()}
    keys = list(new)
    random.Random(1).shuffle(keys)
    for order in (sorted(new), keys, sorted(new, reverse=True)):
        report = diagnose(file_of({key: new[key] for key in order}), target_of(net), accept=ACCEPT)
        assert report.plan is None and "Nor by order" in report.refusal and "ways to place them" in report.refusal


def test_a_container_that_does_not_keep_the_order_is_no_evidence(shapes, file_of, target_of):
    net = shapes("resnet18")
    ours = {new: net[old] for new, old in renamed(net).items()}
    report = diagnose(file_of(ours, ordered=False), target_of(net), accept=ACCEPT)
    assert report.plan is None and "does not keep the order" in report.refusal
    report = diagnose(file_of(ours), target_of(net, ordered=False), accept=ACCEPT)
    assert report.plan is None and "the target's format does not keep" in report.refusal


def test_one_tensor_more_or_another_shape_is_refused(shapes, file_of, target_of):
    net = shapes("squeezenet1_1")
    ours = {new: net[old] for new, old in renamed(net).items()}
    assert diagnose(file_of(ours | {"more.weight": (3,)}), target_of(net), accept=ACCEPT).plan is None
    ours[next(iter(ours))] = (64, 3, 5, 5)
    assert diagnose(file_of(ours), target_of(net), accept=ACCEPT).plan is None


def test_a_sorted_file_whose_shapes_agree_by_chance_is_refused(file_of, target_of):
    # Twelve equal layers: 10 and 11 sort before 2, and every shape agrees all the same.
    goal = {f"net.layer{i}.weight": (4, 4) for i in range(12)}
    names = sorted(f"other.step{i}.weight" for i in range(12))
    report = diagnose(file_of(dict.fromkeys(names, (4, 4))), target_of(goal), accept=ACCEPT)
    assert report.plan is None or not report.plan.complete


def test_what_is_sorted():
    assert sorted_by_name(["a.bias", "a.weight", "b.bias"]) and sorted_by_name(["x1.w", "x2.w", "x10.w", "y.w"])
    assert not sorted_by_name(["p0001", "p0002", "p0003"]) and not sorted_by_name(["a.weight", "a.bias", "b.weight"])
    assert sorted_by_name(["m03.w", "m17.w", "m90.w"])  # random numbers that happen to go up were sorted


def attention(names, last="out"):
    net = {f"{n}.{leaf}": s for n in (*names, last) for leaf, s in (("weight", (8, 8)), ("bias", (8,)))}
    return {"stem.weight": (8, 3), **{f"attn.{n}": s for n, s in net.items()}, "head.weight": (2, 8)}


def test_query_key_and_value_are_asked_about(file_of, target_of):
    ours, goal = file_of(renamed_file(attention("qkv"))), target_of(attention("qkv"))
    plan = diagnose(ours, goal, accept=ACCEPT).plan
    (question,) = plan.ambiguities
    assert question.id == "symmetric" and "8 tensors could change places" in question.question and not plan.complete
    assert set(moved(plan).values()) == {"stem.weight", "head.weight"}
    left = diagnose(ours, goal, accept=ACCEPT, choose={"symmetric": LEAVE_OUT}).plan
    assert not left.complete
    plan = diagnose(ours, goal, accept=ACCEPT, choose={"symmetric": IN_ORDER}).plan
    assert plan.complete and evidence(plan, "attn.k.weight") is Evidence.SYMMETRIC
    assert evidence(plan, "stem.weight") is Evidence.UNIQUE_TOKEN
    assert plan.certificate == ((Evidence.UNIQUE_TOKEN, 2), (Evidence.SYMMETRIC, 8))


def renamed_file(net, seed=0):
    return {new: net[old] for new, old in renamed(net, seed).items()}


def test_numbered_layers_of_one_shape_are_not_symmetric(file_of, target_of):
    net = attention(("fc1", "fc2", "fc3"), "fc4")
    plan = diagnose(file_of(renamed_file(net)), target_of(net), accept=ACCEPT).plan
    assert plan.complete and evidence(plan, "attn.fc2.weight") is Evidence.ORDER_ONLY


def test_a_shortcut_shaped_as_the_last_convolution_is_asked_about(shapes, file_of, target_of):
    net = shapes("resnet50")
    plan = diagnose(file_of(renamed_file(net)), target_of(net), accept=ACCEPT).plan
    (question,) = plan.ambiguities
    assert "layer1.0.conv3" in question.question and "layer1.0.downsample.0" in question.question
    plan = diagnose(file_of(renamed_file(net)), target_of(net), accept=ACCEPT, choose={"symmetric": IN_ORDER}).plan
    assert plan.complete and moved(plan) == renamed(net)


def test_names_that_the_order_contradicts_are_asked_about(file_of, target_of):
    goal = {f"{n}.weight": (4, 4) for n in ("f", "b", "a", "c", "d", "e")}
    ours = {f"{n}.weight": (4, 4) for n in ("x", "a", "b", "c", "d", "e")}
    plan = diagnose(file_of(ours), target_of(goal), accept=ACCEPT).plan
    (question,) = plan.ambiguities
    assert question.id in ("same-order", "rename") and not plan.complete


def test_renamed_modules_between_named_ones_are_placed_beside_extra_tensors(shapes, file_of, target_of):
    net = shapes("resnet18")
    truth = {f"backbone.{n.replace('layer2.', 'stage_b.')}": n for n in net}
    ours = {new: net[old] for new, old in truth.items()} | {"rpn.weight": (9, 9)}
    accept = (*ACCEPT, "extra-tensors")
    plan = diagnose(file_of(ours), target_of(net), accept=accept).plan
    answers = {question.id: question.options[0][0] for question in plan.ambiguities}
    plan = diagnose(file_of(ours), target_of(net), accept=accept, choose=answers).plan
    assert plan.complete and moved(plan) == truth


PARTS = ("query", "key", "value", "gate", "up", "down", "norm", "shortcut")
LAYERS = (
    {"weight": (4, 4), "bias": (4,)},
    {"weight": (4, 4)},
    {"weight": (4,), "bias": (4,)},
    {"weight": (4,), "bias": (4,), "running_mean": (4,), "running_var": (4,)},
    {"weight": (2, 4)},
)


def tree(rng, depth=0):
    if depth == 3 or (depth and rng.random() < 0.5):
        return dict(rng.choice(LAYERS))
    return {name: tree(rng, depth + 1) for name in rng.sample(PARTS, rng.randrange(2, 5))}


def flat(node, path=()):
    if not isinstance(node, dict):
        return {".".join(path): node}
    return {k: v for name, child in node.items() for k, v in flat(child, (*path, name)).items()}


def listed_otherwise(node, rng):
    """The same network whose author wrote the children of one module down in another order."""
    modules = [node]
    for module in modules:
        modules += [child for child in module.values() if isinstance(next(iter(child.values())), dict)]
    chosen = rng.choice(modules)

    def copy(module):
        if not isinstance(next(iter(module.values())), dict):
            return module
        names = list(module)
        if module is chosen:
            rng.shuffle(names)
        return {name: copy(module[name]) for name in names}

    return copy(node)


def test_another_order_of_definition_never_places_wrongly_unasked(file_of, target_of, seeds):
    same = asked = 0
    for seed in seeds(300, full=4000):
        rng = random.Random(seed)
        net = tree(rng)
        goal, ours = flat(net), flat(listed_otherwise(net, rng))
        truth = renamed(ours, seed)
        plan = diagnose(file_of({new: ours[old] for new, old in truth.items()}), target_of(goal), accept=ACCEPT).plan
        asked += plan is not None and bool(plan.ambiguities)
        if plan is not None and plan.complete:
            same += 1
            assert moved(plan) == truth, seed
    assert same > 7 and asked > 7


def test_a_weight_and_its_bias_are_not_torn_apart(file_of, target_of):
    # The sequences agree; but what is one layer in the file would be two in the target.
    ours = {"m.weight": (4,), "m.bias": (4,), "z.weight": (2, 4)}
    goal = {"scale.weight": (4,), "shift.bias": (4,), "head.weight": (2, 4)}
    plan = diagnose(file_of(ours), target_of(goal), accept=ACCEPT).plan
    assert plan is None or not plan.complete
