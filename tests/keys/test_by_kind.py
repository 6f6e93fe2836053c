"""Layers that are counted kind by kind: what their numbers place, what is asked, and where they tell nothing."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose
from inspector.keys.placing.by_kind import counted_by_kind
from inspector.keys.placing.by_order import Sides
from inspector.keys.placing.symmetry import symmetric
from inspector.keys.placing.tree import Leaf

ACCEPT = ("same-order",)
KINDS = {2: "dense", 3: "conv1d", 4: "conv2d"}


def counted(net, *, start=0):
    """{new: old}, each layer by its kind and a running number, as Keras does; 0 is not written."""
    names, count, made = {}, {}, {}
    for name in net:
        module, _, leaf = name.rpartition(".")
        if module not in names:
            weight = net.get(f"{module}.weight", ())
            norm = "batch_normalization" if f"{module}.running_mean" in net else "layer_normalization"
            kind = norm if len(weight) == 1 else KINDS.get(len(weight), "variable")
            number = count[kind] = count.get(kind, start - 1) + 1
            names[module] = f"{kind}_{number}" if number else kind
        made[f"{names[module]}.{leaf}"] = name
    return made


def by_name(net, truth):
    return {new: net[truth[new]] for new in sorted(truth)}


def moved(plan):
    return {s.source: s.target for s in plan.steps if s.source is not None and s.target is not None}


@pytest.mark.parametrize("start", [0, 1, 7])
@pytest.mark.parametrize("name", ["resnet18", "vit_b_16", "squeezenet1_1", "efficientnet_b0", "maxvit_t"])
def test_numbers_tell_the_order_that_sorted_names_lost(name, start, shapes, file_of, target_of):
    net = shapes(name)
    truth = counted(net, start=start)
    ours, goal = file_of(by_name(net, truth)), target_of(net)
    report = diagnose(ours, goal, accept=ACCEPT)
    asked = [question.id for question in report.plan.ambiguities]
    assert asked == ([] if report.plan.complete else ["symmetric"])
    plan = diagnose(ours, goal, accept=ACCEPT, choose=dict.fromkeys(asked, "in-order")).plan
    assert plan.complete and moved(plan) == truth
    assert not diagnose(ours, goal, choose=dict.fromkeys(asked, "in-order")).plan.complete


def test_a_norm_is_not_the_target_s_without_a_number_because_it_has_none(shapes, file_of, target_of):
    """vit_b_16's layer_normalization_24 was read as the last block's, and encoder.ln as layer_normalization."""
    net = shapes("vit_b_16")
    truth = counted(net)
    plan = diagnose(file_of({new: net[old] for new, old in truth.items()}), target_of(net), accept=ACCEPT).plan
    assert plan.complete and moved(plan) == truth


def layer(name, *weight):
    return {f"{name}.weight": weight, f"{name}.bias": weight[:1]}


def attention():
    net = layer("first", 8, 3)
    for n in range(12):
        for part in ("query", "key", "value"):
            net |= layer(f"blocks.{n}.{part}", 8, 8)
        net |= layer(f"blocks.{n}.norm", 8)
    return net


def test_layers_that_another_author_may_list_otherwise_are_asked_about(file_of, target_of):
    net = attention()
    truth = counted(net)
    waiting = diagnose(file_of(by_name(net, truth)), target_of(net), accept=ACCEPT).plan
    assert [question.id for question in waiting.ambiguities] == ["symmetric"]
    assert "72 tensors" in waiting.ambiguities[0].question and "count them" in waiting.ambiguities[0].question
    assert not any("query" in target or "value" in target for target in moved(waiting).values())


def sides(ours, theirs):
    return Sides([Leaf(*x) for x in ours.items()], [Leaf(*x) for x in theirs.items()], False, True)


@pytest.mark.parametrize(
    "change",
    [
        lambda name: name.replace("dense_5.", "dense_50."),  # one is missing
        lambda name: name.replace("dense_5.", "dense_05."),  # no number of a count
        lambda name: name.replace("dense_5.", "attention_5."),  # no kind of layer alone
        lambda name: name.replace("dense_1.", "conv1d_0."),  # what holds the same is of two kinds
        lambda name: f"net.{name}" if "norm" in name else name,  # not all of them stand in one place
    ],
)
def test_numbers_that_are_no_count_of_each_kind_tell_nothing(change):
    net = attention()
    truth = counted(net)
    ours = by_name(net, truth)
    assert {a.name: b.name for a, b in counted_by_kind(sides(ours, net)).pairs} == truth
    assert counted_by_kind(sides({change(name): shape for name, shape in ours.items()}, net)) is None


def test_a_wrapper_before_all_names_hides_no_count():
    net = attention()
    truth = counted(net)
    ours = {f"model.net.{name}": shape for name, shape in by_name(net, truth).items()}
    assert {a.name[10:]: b.name for a, b in counted_by_kind(sides(ours, net)).pairs} == truth


def test_another_count_than_the_target_s_order_is_refused(file_of, target_of):
    net = layer("a", 8, 3) | layer("b", 8, 8) | layer("c", 8, 8) | layer("d", 5, 8)
    other = layer("b", 8, 8) | layer("a", 8, 3) | layer("c", 8, 8) | layer("d", 5, 8)
    truth = counted(other)
    assert counted_by_kind(sides(by_name(other, truth), net)) is None
    assert diagnose(file_of(by_name(other, truth)), target_of(net), accept=ACCEPT).plan is None


def test_a_file_that_lists_otherwise_than_it_counts_is_refused(file_of, target_of):
    net = layer("a", 8, 3) | layer("b", 8, 8) | layer("norm", 8) | layer("c", 8, 8) | layer("d", 5, 8)
    ours = {"dense": "a", "dense_2": "b", "layer_normalization": "norm", "dense_1": "c", "dense_3": "d"}
    listed = {f"{new}.{leaf}": net[f"{old}.{leaf}"] for new, old in ours.items() for leaf in ("weight", "bias")}
    report = diagnose(file_of(listed), target_of(net), accept=ACCEPT)
    assert report.plan is None


def test_a_kernel_of_keras_lies_the_other_way_round(file_of, target_of):
    net = layer("a", 16, 3, 3, 3) | layer("norm", 16) | layer("b", 32, 16, 3, 3) | layer("head", 10, 32)
    leaves = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
    ours = {
        "conv2d/kernel:0": (3, 3, 3, 16),
        "conv2d_1/kernel:0": (3, 3, 16, 32),
        "dense/kernel:0": (32, 10),
        "layer_normalization/gamma:0": (16,),
        "layer_normalization/beta:0": (16,),
        "conv2d/bias:0": (16,),
        "conv2d_1/bias:0": (32,),
        "dense/bias:0": (10,),
    }
    ours = {name: ours[name] for name in sorted(ours)}
    modules = {"conv2d": "a", "conv2d_1": "b", "dense": "head", "layer_normalization": "norm"}
    found = counted_by_kind(sides(ours, net)).pairs
    assert {a.name: b.name for a, b in found} == {
        name: f"{modules[name.partition('/')[0]]}.{leaves[name.partition('/')[2][:-2]]}" for name in ours
    }


def test_one_order_for_each_kind_leaves_more_open_than_one_for_all():
    names = ["block.norm", "block.conv", "block.down.conv", "block.down.norm"]
    # One order for all: nothing else reads norm, conv, conv, norm but itself.
    assert symmetric(names, ["n", "c", "d", "n"]) == set()
    # Norms for themselves could be the other way round only with their convolutions, which are not alike.
    assert symmetric(names, ["n", "c", "d", "n"], ["n", "c", "c", "n"]) == {0, 3}
    assert symmetric(["down.conv", "down.norm", "conv", "norm"], ["d", "n", "c", "n"], ["c", "n", "c", "n"]) == {1, 3}
    # Where a module holds both, its convolution says where its norm goes.
    assert symmetric(["a.conv", "a.norm", "b.conv", "b.norm"], ["d", "n", "c", "n"], ["c", "n", "c", "n"]) == set()


def test_norms_whose_counters_are_not_in_the_file_are_asked_about_as_well(shapes, file_of, target_of):
    """A counter that the file lacks was taken for a tensor that its name had placed, and pinned its norm."""
    net = {name: shape for name, shape in shapes("resnet18").items() if not name.endswith("num_batches_tracked")}
    truth = counted(net)
    report = diagnose(file_of(by_name(net, truth)), target_of(shapes("resnet18")), accept=ACCEPT)
    assert [question.id for question in report.plan.ambiguities] == ["symmetric"]
