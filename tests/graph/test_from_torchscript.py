"""The graph of TorchScript code is what torch's own parser makes of the same file."""

from __future__ import annotations

import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from inspector.checkpoint.source import PathSource
from inspector.graph.from_torchscript import graph_from_torchscript
from inspector.graph.types import Graph, NodeKind
from inspector.limits import DEFAULT_LIMITS
from tests.graph.zoo import LARGE, SMALL, Script

# Operators that stay what they are under every pass of torch's; edges between them are compared.
HEAVY = {
    *("conv2d", "_convolution", "linear", "addmm", "batch_norm", "layer_norm", "relu", "relu_", "relu6", "hardtanh"),
    *("hardtanh_", "hardswish_", "hardswish", "hardsigmoid", "silu", "silu_", "sigmoid", "add", "add_"),
    *("max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "mean", "flatten", "cat", "softmax", "lstm", "split"),
    *("matmul", "bmm", "baddbmm", "gelu", "roll", "scaled_dot_product_attention"),
}


def save(path: Path, model: nn.Module, shape: tuple[int, ...], *, script: bool) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.eval()
        made = torch.jit.script(model) if script else torch.jit.trace(model, torch.rand(shape), check_trace=False)
        made.save(str(path))
    return path


def drawn(path: Path) -> Graph:
    found = graph_from_torchscript(PathSource(path), DEFAULT_LIMITS.metered())
    assert found is not None
    return found


def contracted(labels: list[str], edges: set[tuple[int, int]]) -> tuple[list[str], set[tuple[int, int]]]:
    """The heavy operators that are used, numbered in their order; an edge where a way leads from one to the next."""
    before: dict[int, set[int]] = defaultdict(set)
    for source, target in edges:
        before[target].add(source)
    used = _reached("output", labels, before)
    kept = [n for n, label in enumerate(labels) if n in used and (label in HEAVY or label == "output")]
    places = {n: place for place, n in enumerate(kept)}
    found = set()
    for n in kept:
        seen, todo = set(), list(before[n])
        while todo:
            source = todo.pop()
            if source in places:
                found.add((places[source], places[n]))
            elif source not in seen:
                seen.add(source)
                todo += before[source]
    return [labels[n] for n in kept], found


def _reached(word: str, labels: list[str], steps: dict[int, set[int]]) -> set[int]:
    found = {n for n, label in enumerate(labels) if label == word}
    todo = list(found)
    while todo:
        for other in steps[todo.pop()] - found:
            found.add(other)
            todo.append(other)
    return found


def own_edges(graph: Graph) -> tuple[list[str], set[tuple[int, int]]]:
    nodes = [n for n in graph.nodes if n.kind is not NodeKind.OUTPUT]
    places = {n.id: number for number, n in enumerate(nodes)}
    places |= {n.id: len(nodes) for n in graph.nodes if n.kind is NodeKind.OUTPUT}
    labels = [n.label if n.kind is NodeKind.OPERATOR else "input" for n in nodes]
    return contracted([*labels, "output"], {(places[e.source], places[e.target]) for e in graph.edges})


def torchs_edges(path: Path) -> tuple[list[str], set[tuple[int, int]]]:
    """Of torch.jit.load, frozen: inlined, with the branches gone that its own settings decide. Values that an operator
    changes in place come from it afterwards."""
    module = torch.jit.freeze(torch.jit.load(str(path)).eval(), optimize_numerics=False)
    labels: list[str] = []
    edges: set[tuple[int, int]] = set()
    made: dict[str, int] = {}
    same: dict[str, str] = {}

    def root(name: str) -> str:
        while name in same:
            name = same[name]
        return name

    def walk(block: Any) -> None:
        for node in block.nodes():
            ends = []
            for inner in node.blocks():
                walk(inner)
                ends += [root(o.debugName()) for o in inner.outputs()]
            own = len(labels)
            label = node.kind().rpartition("::")[2]
            labels.append(label)
            inputs = [root(i.debugName()) for i in node.inputs()]
            edges.update((made[name], own) for name in (*inputs, *ends) if name in made)
            outputs = [o.debugName() for o in node.outputs()]
            if (label.endswith("_") and inputs) or label == "append":
                made[inputs[0]] = own
                same[outputs[0]] = inputs[0]
            else:
                made.update(dict.fromkeys(outputs, own))

    walk(module.graph)
    labels.append("output")
    edges.update((made[name], len(labels) - 1) for o in module.graph.outputs() if (name := root(o.debugName())) in made)
    return contracted(labels, edges)


@pytest.mark.parametrize("script", [False, True], ids=["traced", "scripted"])
@pytest.mark.parametrize("name", ["cnn", "dense", "shared", "lstm", "attention"])
def test_edges_are_torchs_own(tmp_path: Path, name: str, script: bool) -> None:
    make, shape = SMALL[name]
    path = save(tmp_path / "a.pt", make(), shape, script=script)
    assert own_edges(drawn(path)) == torchs_edges(path)


@pytest.mark.parametrize("script", [False, True], ids=["traced", "scripted"])
@pytest.mark.parametrize("name", LARGE)
def test_edges_of_large_networks_are_torchs_own(tmp_path: Path, name: str, script: bool, thorough: bool) -> None:
    if not thorough:
        pytest.skip("make thorough")
    make, shape = LARGE[name]
    path = save(tmp_path / "a.pt", make(), shape, script=script)
    ours, torchs = own_edges(drawn(path)), torchs_edges(path)
    if (name, script) == ("vit", True):
        # Freezing lets one layer's question (is there a batch?) answer for all that follow: arrows from each layer norm
        # to the additions of all later layers, of which the graph before freezing has none.
        assert ours[0] == torchs[0] and ours[1] < torchs[1]
        assert {(ours[0][s], ours[0][t]) for s, t in torchs[1] - ours[1]} == {("layer_norm", "add")}
        return
    assert ours == torchs


def _pairs(graph: Graph) -> set[tuple[str, str]]:
    """(group/label, group/label) of each edge."""
    names = {n.id: f"{n.group}/{n.label}".lstrip("/") for n in graph.nodes}
    return {(names[e.source], names[e.target]) for e in graph.edges}


def test_branches_and_loops_are_groups_that_hand_out_what_they_leave(tmp_path: Path) -> None:
    graph = drawn(save(tmp_path / "a.pt", Script(), (2, 4), script=True))
    pairs = _pairs(graph)
    assert {
        ("x", "a/linear"),
        ("a/linear", "for/add"),
        # What is changed in place is what is read afterwards.
        ("for/add", "for/mul_"),
        ("for/mul_", "for/for"),
        ("for/for", "blocks.0/linear"),
        ("blocks.2/linear", "if.then.a/linear"),
        ("blocks.2/linear", "if.else/mul"),
        ("if.then.a/linear", "if/if"),
        ("if.else/mul", "if/if"),
        ("bool", "if/if"),
        ("if/if", "while/div"),
        ("while/while", "result"),
    } <= pairs
    assert ("for/add", "for/for") not in pairs
    assert ("if.then.a/linear", "if.else/mul") not in pairs


def test_what_the_files_own_settings_decide_is_drawn_as_they_decide(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Dropout(0.5))
    graph = drawn(save(tmp_path / "a.pt", model, (1, 3, 4, 4), script=True))
    assert [n.label for n in graph.nodes if n.kind is NodeKind.OPERATOR] == ["conv2d", "batch_norm", "dropout"]
    assert any("file's own settings decide" in remark for remark in graph.remarks)
    (conv, *_) = [n for n in graph.nodes if n.label == "conv2d"]
    assert (conv.group, [(p.name, p.shape) for p in conv.parameters]) == (
        "0",
        [("0.weight", (4, 3, 1, 1)), ("0.bias", (4,))],
    )


def test_a_number_that_changes_in_a_loop_decides_nothing(tmp_path: Path) -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
            first = True
            for _ in range(n):
                if first:  # noqa: SIM108 a branch is wanted
                    x = x.relu()
                else:
                    x = x.tanh()
                first = False
            return x

    graph = drawn(save(tmp_path / "a.pt", Net(), (2,), script=True))
    labels = {n.label for n in graph.nodes}
    assert {"relu", "tanh"} <= labels


def test_code_that_is_not_pythons_grammar_is_a_remark(tmp_path: Path) -> None:
    import zipfile

    path = save(tmp_path / "a.pt", SMALL["cnn"][0](), SMALL["cnn"][1], script=False)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "b.pt", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, b"class Linear(Module:\n" + data if "modules/linear" in name else data)
    graph = drawn(tmp_path / "b.pt")
    assert any("could not be parsed" in remark for remark in graph.remarks)
    assert not [n for n in graph.nodes if n.group == "head.2" and n.label == "linear"]
