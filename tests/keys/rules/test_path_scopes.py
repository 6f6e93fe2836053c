"""Paths of TensorFlow, Keras 2 and Haiku: read as dots, with their scopes and numbers, and what must not be."""

from __future__ import annotations

import pytest
import torch

from inspector.architectures.targets import parse_target
from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.keys.placing.tree import Leaf
from inspector.keys.rules.entry import Questions
from inspector.keys.rules.path_names import RULE
from inspector.readers import open_checkpoint

KERAS = {
    "weight": "kernel",
    "bias": "bias",
    "running_mean": "moving_mean",
    "running_var": "moving_variance",
    "norm.weight": "gamma",
    "norm.bias": "beta",
}
HAIKU = KERAS | {
    "weight": "w",
    "bias": "b",
    "norm.weight": "scale",
    "norm.bias": "offset",
    "running_mean": "mean",
    "running_var": "var",
}


def network(blocks=2, width=6):
    torch.manual_seed(0)
    made = {"stem.weight": torch.randn(width, 3, 5, 5)}
    for n in range(blocks):
        made[f"layer.{n}.conv.weight"] = torch.randn(width, 4, 3, 3)
        for leaf in ("weight", "bias", "running_mean", "running_var"):
            made[f"layer.{n}.bn.{leaf}"] = torch.rand(width)
    return made | {"fc.weight": torch.randn(4, width), "fc.bias": torch.randn(4)}


def stored(truth, names, spell):
    made = {}
    for name, tensor in truth.items():
        module, _, leaf = name.rpartition(".")
        norm = module.endswith("bn") and leaf in ("weight", "bias")
        leaf = names[f"norm.{leaf}" if norm else leaf]
        if tensor.dim() == 4:
            tensor = tensor.permute(2, 3, 1, 0).contiguous()
        made[spell(module, leaf)] = tensor.T.contiguous() if tensor.dim() == 2 else tensor
    return made


WAYS = {
    "Keras 2": (KERAS, lambda module, leaf: f"{module.replace('.', '/')}/{leaf}:0"),
    "TensorFlow 1": (KERAS, lambda module, leaf: f"model/{module.replace('.', '_', 1).replace('.', '/')}/{leaf}"),
    "a scope of its own": (KERAS, lambda module, leaf: f"my_net/{module.replace('.', '/')}/{leaf}"),
    "Haiku": (HAIKU, lambda module, leaf: f"res_net/~/{module.replace('.', '/~/')}/{leaf}"),
}


def report_of(tmp_path, ours, theirs, **answers):
    torch.save(ours, tmp_path / "a.pth")
    torch.save(theirs, tmp_path / "b.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    target = parse_target(f"file:{tmp_path / 'b.pth'}", open_file=open_checkpoint)
    return checkpoint, diagnose(checkpoint, target, **answers)


@pytest.mark.parametrize("listed", [True, False], ids=["in order", "sorted"])
@pytest.mark.parametrize("way", WAYS)
def test_every_tensor_comes_to_its_place_unasked(tmp_path, way, listed):
    truth = network()
    made = stored(truth, *WAYS[way])
    made = made if listed else dict(sorted(made.items()))
    checkpoint, report = report_of(tmp_path, made, truth)
    assert report.plan is not None and report.plan.complete
    placed = apply_plan(checkpoint, report.plan)
    assert placed.keys() == truth.keys()
    assert all(torch.equal(placed[name], truth[name]) for name in truth)
    use = next(rule for rule in report.plan.rules if rule.id == "path-names")
    assert use.count == len(truth)


def test_a_scope_that_says_which_tower_it_is_stays_a_word(tmp_path):
    """encoder/... is not what the target calls decoder, whose modules below are the same."""
    theirs = {f"decoder.{name}": tensor for name, tensor in network().items()}
    ours = stored({f"encoder.{n}": t for n, t in network().items()}, *WAYS["Keras 2"])
    leaves, places = ([Leaf(name, tuple(tensor.shape)) for name, tensor in side.items()] for side in (ours, theirs))
    assert all(one.name.startswith("encoder.") for one in RULE.spells(leaves, places, Questions({})))
    _, report = report_of(tmp_path, ours, theirs)
    assert report.plan is None or not report.plan.complete


def test_two_scopes_of_one_network_are_not_one(tmp_path):
    truth = network()
    ours = stored({f"a.{n}": t for n, t in truth.items()}, *WAYS["Keras 2"])
    ours |= stored({f"b.{n}": t for n, t in truth.items()}, *WAYS["Keras 2"])
    _, report = report_of(tmp_path, ours, truth)
    assert report.plan is None or not report.plan.complete


def test_a_number_in_a_name_of_the_target_stays_there(tmp_path):
    """The target has layer_0 itself: no level is made of it."""
    truth = {n.replace("layer.", "layer_"): t for n, t in network().items()}
    made = stored(truth, KERAS, lambda module, leaf: f"{module.replace('.', '/')}/{leaf}")
    checkpoint, report = report_of(tmp_path, made, truth)
    assert report.plan is not None and report.plan.complete
    placed = apply_plan(checkpoint, report.plan)
    assert all(torch.equal(placed[name], truth[name]) for name in truth)


def test_slashes_that_the_target_has_too_are_left_alone(tmp_path):
    truth = {n.replace(".", "/"): t for n, t in network().items()}
    _, report = report_of(tmp_path, truth, truth)
    assert report.loads and report.plan is not None and not report.plan.rules
