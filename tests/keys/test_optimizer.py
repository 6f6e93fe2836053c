"""Indices of an optimizer's state mapped to names, against torch's own numbering, and what is refused."""

from __future__ import annotations

import random

import pytest
import torch
from torch import nn

from inspector.keys.diagnose import diagnose
from inspector.keys.optimizer.by_index import GroupsByKind, NotMapped, deal
from inspector.keys.optimizer.map import map_optimizers
from inspector.readers import open_checkpoint


def keys_of(*lengths):
    numbers = iter(map(str, range(sum(lengths))))
    return [[next(numbers) for _ in range(length)] for length in lengths]


def sizes_of(groups, parameters):
    names = [name for group in groups for name in group]
    return {str(i): [parameters[name]] for i, name in enumerate(names)}


PLAIN = {"a.weight": (4, 3), "a.bias": (4,), "n.weight": (4,), "n.bias": (4,), "b.weight": (2, 4), "b.bias": (2,)}


@pytest.mark.parametrize(
    "groups",
    [
        [list(PLAIN)],
        [[name] for name in PLAIN],
        [["a.weight", "b.weight"], ["a.bias", "n.weight", "n.bias", "b.bias"]],
        [["a.bias", "n.weight", "n.bias", "b.bias"], ["a.weight", "b.weight"]],
        [["a.weight", "n.weight", "b.weight"], ["a.bias", "n.bias", "b.bias"]],
        [["b.weight", "b.bias"], ["a.weight", "a.bias", "n.weight", "n.bias"]],
        [["a.weight", "b.weight", "b.bias"]],
    ],
)
def test_usual_groups_are_read(groups):
    dealt, _ = deal(keys_of(*map(len, groups)), sizes_of(groups, PLAIN), PLAIN, by_kind=True)
    assert dealt == groups


def test_groups_by_kind_are_asked_about_since_others_look_the_same():
    # Dealt out by hand, and yet of the same shapes, one after the other, as all biases here and the others there.
    names = ["n.weight", "n.bias", "s", "m.weight", "m.bias", "f.weight", "f.bias", "k.weight", "k.bias"]
    shapes = dict.fromkeys(names, (3,)) | {
        "f.weight": (3, 3),
        "g.weight": (3, 3),
        "h.weight": (3, 3),
        "h.bias": (3,),
    }
    first = ["n.weight", "s", "f.bias", "k.bias", "h.bias"]
    by_hand = [first, [name for name in shapes if name not in first]]
    with pytest.raises(GroupsByKind, match="5 bias in group 1; 6 weight, 1 s in group 2"):
        deal(keys_of(5, 7), sizes_of(by_hand, shapes), shapes)
    usual = [["a.weight", "n.weight", "b.weight"], ["a.bias", "n.bias", "b.bias"]]
    with pytest.raises(GroupsByKind, match="by kind of parameter, with 3 weight in group 1; 3 bias in group 2"):
        deal(keys_of(3, 3), sizes_of(usual, PLAIN), PLAIN)


TWINS = {f"{tower}.{leaf}": (3, 3) if leaf == "weight" else (3,) for tower in "ab" for leaf in ("weight", "bias")}


@pytest.mark.parametrize(
    "groups",
    [
        [["a.weight", "a.bias"], ["b.weight", "b.bias"]],
        [["b.weight", "b.bias"], ["a.weight", "a.bias"]],
        [["b.weight", "b.bias"]],
    ],
)
def test_equal_towers_are_never_told_apart(groups):
    with pytest.raises(NotMapped, match=r"several ways|more than one way"):
        deal(keys_of(*map(len, groups)), sizes_of(groups, TWINS), TWINS)


def test_groups_of_norm_modules_are_not_taken_for_groups_of_leaves():
    # Biases here and weights there would fit as well as one module here and one there.
    norms = {"a.weight": (3,), "a.bias": (3,), "b.weight": (3,), "b.bias": (3,)}
    groups = [["a.weight", "a.bias"], ["b.weight", "b.bias"]]
    with pytest.raises(NotMapped, match="several ways"):
        deal(keys_of(2, 2), sizes_of(groups, norms), norms)
    bare = {"a.weight": (5, 4), "e.weight": (5, 4)}
    with pytest.raises(NotMapped, match="several ways"):
        deal(keys_of(1, 1), sizes_of([["e.weight"], ["a.weight"]], bare), bare)


def net(r: random.Random, depth: int = 0) -> nn.Module:
    made = nn.Module()
    for name in r.sample("abcdefgh", r.randint(2, 4)):
        d, kind = r.choice((3, 3, 4)), r.randrange(6 if depth < 2 else 4)
        layers = (lambda d=d: nn.Linear(d, 3), lambda d=d: nn.LayerNorm(d), lambda d=d: nn.Conv1d(d, d, 1))
        made.add_module(name, net(r, depth + 1) if kind > 3 else layers[kind % 3]())
    return made


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_mapped_is_mapped_rightly(seed):
    r = random.Random(seed)
    parameters = {name: tuple(p.shape) for name, p in net(r).named_parameters()}
    modules = list(dict.fromkeys(name.rpartition(".")[0] for name in parameters))
    r.shuffle(modules)
    some = set(modules[: len(modules) // 2])
    ways = (
        lambda name: name.rpartition(".")[0] in some,
        lambda name: len(parameters[name]) > 1,
        lambda name: name.endswith("bias"),
        lambda name: name.partition(".")[0] in "abcd",
    )
    way = r.choice(ways)
    first = [name for name in parameters if way(name)]
    groups = [group for group in (first, [name for name in parameters if name not in first]) if group]
    if r.random() < 0.3:
        groups = groups[:1]
    try:
        dealt, _ = deal(keys_of(*map(len, groups)), sizes_of(groups, parameters), parameters)
    except NotMapped:
        return
    assert dealt == groups


def stepped(model: nn.Module, make=torch.optim.Adam) -> torch.optim.Optimizer:
    optimizer = make(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return optimizer


def opened(tmp_path, **content):
    torch.save(content, tmp_path / "run.pth")
    return open_checkpoint(tmp_path / "run.pth")


def test_the_diagnosis_says_how_many_are_mapped(tmp_path):
    model = nn.Sequential(nn.Conv1d(3, 4, 1), nn.BatchNorm1d(4), nn.Flatten(), nn.Linear(4, 2))
    checkpoint = opened(tmp_path, state_dict=model.state_dict(), optimizer=stepped(model).state_dict())
    (found,) = map_optimizers(checkpoint, checkpoint.weights)
    assert found.names == tuple(name for name, _ in model.named_parameters())
    assert found.says == "optimizer: Adam-like, 6 of 6 parameters mapped by index and shape."
    from inspector.architectures.targets import target_of_checkpoint

    report = diagnose(checkpoint, target_of_checkpoint(checkpoint, "itself"))
    assert [f.says for f in report.findings if f.id == "optimizer-state"] == [found.says]
    alone = opened(tmp_path, state_dict=model.state_dict())
    assert map_optimizers(alone, alone.weights) == ()


def test_names_as_keys_are_taken_by_name_and_checked(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    stored = stepped(model).state_dict()
    names = [name for name, _ in model.named_parameters()]
    stored["state"] = {names[i]: entry for i, entry in stored["state"].items()}
    stored["param_groups"][0]["params"] = names[::-1]
    checkpoint = opened(tmp_path, model=model.state_dict(), optim=stored)
    (found,) = map_optimizers(checkpoint, checkpoint.weights)
    assert found.by_name and found.names == tuple(names[::-1])
    stored["state"]["0.weight"], stored["state"]["1.weight"] = stored["state"]["1.weight"], stored["state"]["0.weight"]
    checkpoint = opened(tmp_path, model=model.state_dict(), optim=stored)
    assert "another shape" in map_optimizers(checkpoint, checkpoint.weights)[0].refusal


def test_pieces_without_groups_are_said_not_to_be_mapped(tmp_path):
    flat = {"optimizer_state_dict": {"fp32_flat_groups": [torch.zeros(9)], "step": torch.ones(1)}}
    checkpoint = opened(tmp_path, module=nn.Linear(3, 2).state_dict(), **flat)
    for found in map_optimizers(checkpoint, checkpoint.weights):
        assert found.refusal and "cannot be mapped" in found.says


def test_betas_that_groups_share_are_shown_in_each(tmp_path):
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam([{"params": [model.weight]}, {"params": [model.bias]}])
    checkpoint = opened(tmp_path, model=model.state_dict(), optimizer=optimizer.state_dict())
    groups = dict(dict(checkpoint.root.children)["optimizer"].children)["param_groups"]
    for _, group in groups.children:
        betas = dict(group.children)["betas"]
        assert [value.says for _, value in betas.children] == ["0.9", "0.999"]


def test_weights_sorted_by_name_are_no_order_to_count_by(tmp_path):
    from inspector.architectures.targets import target_of_checkpoint
    from inspector.exports.optimizer import plan_optimizers

    model = nn.Sequential()
    for name in ("c", "a", "b"):
        model.add_module(name, nn.Linear(3, 3, bias=False))
    goal = target_of_checkpoint(opened(tmp_path, **model.state_dict()), "goal")
    stored = stepped(model).state_dict()
    for state, fine in ((dict(sorted(model.state_dict().items())), False), (dict(model.state_dict()), True)):
        checkpoint = opened(tmp_path, state_dict=state, optimizer=stored)
        plan = diagnose(checkpoint, goal, choose={}).plan
        (going,) = plan_optimizers(checkpoint, plan, goal)
        assert (not going.refusal) is fine
