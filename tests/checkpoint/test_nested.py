"""Which state dicts a file holds: every usual way to nest them, with role, order and metadata."""

from __future__ import annotations

import argparse
import io
from collections import OrderedDict, defaultdict
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from inspector.checkpoint.data import read_array
from inspector.checkpoint.torch_bridge import to_state_dict
from inspector.checkpoint.tree import module_tree
from inspector.checkpoint.types import Checkpoint, ModuleNode, StateRole
from inspector.cli.main import run
from inspector.readers import open_checkpoint


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
        self.register_buffer("scratch", torch.zeros(3), persistent=False)
        self.register_buffer("mean", torch.ones(3))
        self.dropout_rate = 0.25

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.bn(self.conv(x)).mean((2, 3)))


def opened(value: object, *, legacy: bool = False) -> Checkpoint:
    buffer = io.BytesIO()
    torch.save(value, buffer, _use_new_zipfile_serialization=not legacy)
    return open_checkpoint(buffer.getvalue())


def roles(checkpoint: Checkpoint) -> list[tuple[str, str]]:
    return [(s.label, s.role.value) for s in checkpoint.state_dicts]


@pytest.fixture(scope="module")
def trained() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.003)
    net(torch.ones(2, 3, 5, 5)).sum().backward()
    optimizer.step()
    return net, optimizer


def test_a_state_dict_is_the_file_itself(trained: Any) -> None:
    checkpoint = opened(trained[0].state_dict())
    assert roles(checkpoint) == [("the file itself", "weights")]
    state = checkpoint.state_dicts[0]
    assert state.kind == "collections.OrderedDict"
    assert [t.name for t in state.tensors] == list(trained[0].state_dict())
    assert dict(state.versions)["bn"] == 2 and dict(state.versions)["conv"] == 1
    assert checkpoint.weights is state and not checkpoint.findings


def test_a_training_checkpoint(trained: Any) -> None:
    net, optimizer = trained
    checkpoint = opened(
        {
            "epoch": 7,
            "best_acc": np.float64(0.5),
            "arch": "net",
            "rng_state": torch.get_rng_state(),
            "optimizer": optimizer.state_dict(),
            "ema": {k: v + 1 for k, v in net.state_dict().items()},
            "model": {f"module.{k}": v for k, v in net.state_dict().items()},
            "args": argparse.Namespace(lr=0.1),
        }
    )
    assert roles(checkpoint) == [
        ("model", "weights"), ("ema", "ema"), ("optimizer", "optimizer"), ("the file itself", "training"),
    ]  # fmt: skip
    assert checkpoint.weights is not None and checkpoint.weights.path == ("model",)
    assert checkpoint.state_dicts[3].tensors[0].name == "rng_state"
    adam = checkpoint.state_dicts[2]
    expected = [f"state.{i}.{k}" for i in range(6) for k in ("step", "exp_avg", "exp_avg_sq")]
    assert [t.name for t in adam.tensors] == expected
    metadata = dict(checkpoint.metadata)
    assert (metadata["epoch"], metadata["best_acc"], metadata["arch"]) == ("7", "0.5", "net")
    assert metadata["optimizer.param_groups.0.lr"] == "0.003"
    assert metadata["args.lr"] == "0.1"


def test_lightning(trained: Any) -> None:
    net, optimizer = trained
    checkpoint = opened(
        {
            "epoch": 1,
            "global_step": 10,
            "pytorch-lightning_version": "2.1.0",
            "state_dict": {f"model.{k}": v for k, v in net.state_dict().items()},
            "loops": {},
            "callbacks": {"ModelCheckpoint": {"best_model_score": torch.tensor(0.5)}},
            "optimizer_states": [optimizer.state_dict(), deepcopy(optimizer.state_dict())],
            "lr_schedulers": [{"_last_lr": [0.1]}],
            "hyper_parameters": {"depth": 18},
        }
    )
    found = roles(checkpoint)
    assert found[0] == ("state_dict", "weights")
    assert ("optimizer_states / 0", "optimizer") in found and ("optimizer_states / 1", "optimizer") in found
    assert dict(checkpoint.metadata)["hyper_parameters.depth"] == "18"
    assert dict(checkpoint.metadata)["pytorch-lightning_version"] == "2.1.0"


def test_deeper_nesting_lists_and_pairs(trained: Any) -> None:
    state = trained[0].state_dict()
    assert roles(opened({"a": {"b": [{"net": state}]}})) == [("a / b / 0 / net", "weights")]
    gan = opened({"netG": state, "netD": {"0.weight": torch.ones(2)}})
    assert [r for r, _ in roles(gan)] == ["netG", "netD"]
    made = defaultdict(dict)
    made["state_dict"].update(state)
    assert roles(opened(made)) == [("state_dict", "weights")]


def test_averaged_weights_alone_are_chosen(trained: Any) -> None:
    checkpoint = opened({"model_ema": trained[0].state_dict(), "optimizer": trained[1].state_dict()})
    assert checkpoint.weights is not None and checkpoint.weights.role is StateRole.EMA


def test_an_optimizer_alone_is_no_model(trained: Any) -> None:
    checkpoint = opened(trained[1].state_dict())
    assert roles(checkpoint) == [("the file itself", "optimizer")]
    assert checkpoint.weights is None


@pytest.mark.parametrize(("value", "says"), [
    (torch.ones(3, 4), "one tensor, 3x4 float32, without a name"),
    ([torch.ones(3), torch.ones(2)], "a list with 2 tensors, not a state dict"),
    ((torch.ones(3),), "a tuple with 1 tensor,"),
])  # fmt: skip
def test_bare_tensors_are_said_to_be_that(value: object, says: str) -> None:
    checkpoint = opened(value)
    assert checkpoint.state_dicts == () and checkpoint.weights is None
    (finding,) = [f for f in checkpoint.findings if f.id == "unnamed-tensors"]
    assert says in finding.says and finding.severity.value == "info"


def nodes(node: ModuleNode) -> dict[str, ModuleNode]:
    return {node.path: node} | {k: v for child in node.children for k, v in nodes(child).items()}


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("path", [(), ("model",)])
def test_a_pickled_module(trained: Any, path: tuple[str, ...], legacy: bool, monkeypatch: Any) -> None:
    net = trained[0]
    # The class must be importable by name for pickle to write it.
    monkeypatch.setitem(__import__("sys").modules, Net.__module__, __import__("types").SimpleNamespace(Net=Net))
    checkpoint = opened({path[0]: net, "epoch": 1} if path else net, legacy=legacy)
    state = checkpoint.state_dicts[0]
    assert (state.path, state.role, state.is_module) == (path, StateRole.WEIGHTS, True)
    assert state.kind == f"{Net.__module__}.Net"
    # torch's own state_dict is the oracle: order, names, values, without the non-persistent buffer.
    expected = net.state_dict()
    assert [t.name for t in state.tensors] != [] and {t.name for t in state.tensors} == set(expected)
    for name, tensor in to_state_dict(checkpoint, state).items():
        assert tensor.equal(expected[name]), name
    assert {t.name for t in state.tensors if t.is_parameter} == {n for n, _ in net.named_parameters()}
    assert all(t.requires_grad for t in state.tensors if t.is_parameter)
    tree = nodes(state.modules)
    assert list(tree) == [n for n, _ in net.named_modules()]
    assert {p: n.kind for p, n in tree.items() if p} == {
        n: f"{type(m).__module__}.{type(m).__name__}" for n, m in net.named_modules() if n
    }
    conv = dict(tree["conv"].hyperparameters)
    assert (conv["in_channels"], conv["kernel_size"], conv["padding"]) == ("3", "(3, 3)", "(1, 1)")
    assert dict(tree["bn"].hyperparameters)["eps"] == "1e-05"
    assert dict(tree[""].hyperparameters)["dropout_rate"] == "0.25"
    scratch = [t for t in checkpoint.tensors if t.path[-1] == "scratch"]
    assert len(scratch) == 1 and "non-persistent" in scratch[0].note


def test_tied_parameters_of_a_module(monkeypatch: Any) -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[1].weight = net[0].weight
    checkpoint = opened(net)
    state = checkpoint.state_dicts[0]
    assert [t.name for t in state.tensors] == list(net.state_dict())
    by_name = {t.name: t.storage_id for t in state.tensors}
    assert by_name["0.weight"] == by_name["1.weight"] != by_name["0.bias"]
    loaded = to_state_dict(checkpoint, state)
    assert loaded["0.weight"].data_ptr() == loaded["1.weight"].data_ptr()
    shared = next(f for f in checkpoint.findings if f.id == "shared-storage")
    assert dict(shared.evidence) == {"groups": 1, "tensors": 2}


def test_a_submodule_used_twice_is_listed_twice() -> None:
    inner = nn.Linear(2, 2)
    net = nn.ModuleDict({"a": inner, "b": nn.Sequential(inner)})
    checkpoint = opened(net)
    assert [t.name for t in checkpoint.state_dicts[0].tensors] == list(net.state_dict())


def test_numpy_arrays_are_tensors_too() -> None:
    fortran = np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3))
    big = np.arange(3000, dtype=np.float64)
    checkpoint = opened(OrderedDict(f=fortran, big=big, w=torch.ones(2), s=np.float32(0.5)))
    by_name = {t.name: t for t in checkpoint.tensors}
    assert read_array(checkpoint, by_name["f"]).tolist() == fortran.tolist()
    assert np.array_equal(read_array(checkpoint, by_name["big"]), big)
    assert dict(checkpoint.metadata)["s"] == "0.5"


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_numpy_in_plain_pickles_of_every_protocol(protocol: int, tmp_path: Path) -> None:
    import pickle

    state = {"w": np.arange(4096, dtype=np.float32).reshape(64, 64), "n": np.int64(3)}
    (tmp_path / "w.pkl").write_bytes(pickle.dumps(state, protocol=protocol))
    checkpoint = open_checkpoint(tmp_path / "w.pkl")
    assert np.array_equal(read_array(checkpoint, checkpoint.tensors[0]), state["w"])
    assert dict(checkpoint.metadata)["n"] == "3"
    # From protocol 3 the bytes stay in the file.
    assert (next(iter(checkpoint.storages.values())).inline is None) == (protocol >= 3)


def test_the_tree_that_names_spell() -> None:
    checkpoint = opened({"a.b.weight": torch.ones(1), "a.bias": torch.ones(1), "top": torch.ones(1)})
    tree = module_tree(checkpoint.tensors)
    assert {p: [t.name for t in n.tensors] for p, n in nodes(tree).items()} == {
        "": ["top"], "a": ["a.bias"], "a.b": ["a.b.weight"],
    }  # fmt: skip
    deep = opened({".".join("x" * 5000): torch.ones(1)})
    assert len(nodes(deep.state_dicts[0].modules)) == 65


@pytest.mark.parametrize(
    ("trained", "averaged"),
    [
        ("state_dict", "ema"),
        ("model_state", "model_ema"),
        ("stuff", "stuff_ema"),
        ("student", "teacher"),
        ("net", "swa"),
    ],
)
def test_averages_are_not_taken_for_the_weights_they_were_made_of(trained: str, averaged: str, tmp_path: Path) -> None:
    # One tensor of an odd name said too little by itself, and the averages were taken, by `convert` without a word.
    for names in (["module.x"], ["module.x", "module.y"]):
        value = {trained: {n: torch.zeros(3) for n in names}, averaged: {n: torch.ones(3) for n in names}}
        for order in (value, dict(reversed(value.items()))):
            torch.save(order, tmp_path / "m.pth")
            weights = open_checkpoint(tmp_path / "m.pth").weights
            assert weights is not None and weights.path == (trained,)
            assert run(["convert", str(tmp_path / "m.pth"), "-o", str(tmp_path / "out.pth"), "--overwrite"]) == 0
            assert all(not tensor.any() for tensor in torch.load(tmp_path / "out.pth").values())


def test_averages_alone_are_the_weights(tmp_path: Path) -> None:
    torch.save({"ema": {"x": torch.ones(3)}, "other": {"y": torch.zeros(9)}}, tmp_path / "m.pth")
    weights = open_checkpoint(tmp_path / "m.pth").weights
    assert weights is not None and weights.path == ("ema",)


@pytest.mark.parametrize(("student", "is_average"), [([8, 8], True), ([8], False), ([4, 4], False)])
def test_a_teacher_of_another_architecture_is_no_average(student: list[int], is_average: bool) -> None:
    def net(widths: list[int]) -> nn.Module:
        sizes = [3, *widths]
        layers = [nn.Conv2d(a, b, 3) for a, b in zip(sizes, widths, strict=False)]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], 2))

    wrapped = {f"module.{name}": tensor for name, tensor in net(student).state_dict().items()}
    checkpoint = opened({"student": wrapped, "teacher": net([8, 8]).state_dict(), "epoch": 3})
    roles = {state.label: state.role for state in checkpoint.state_dicts}
    assert roles == {"student": StateRole.WEIGHTS, "teacher": StateRole.EMA if is_average else StateRole.WEIGHTS}
    assert checkpoint.weights is not None and checkpoint.weights.label == "student"
    assert "teacher" in opened({"teacher": net([8, 8]).state_dict(), "epoch": 3}).state_dicts[0].why
