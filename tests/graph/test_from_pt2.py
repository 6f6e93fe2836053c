"""The graph of a .pt2 is the one that torch itself loads from it, edge by edge."""

from __future__ import annotations

import json
import operator
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from inspector.checkpoint.source import PathSource
from inspector.graph.from_pt2 import graph_from_pt2
from inspector.graph.sources import graph_of
from inspector.graph.types import Graph, NodeKind
from inspector.limits import DEFAULT_LIMITS
from inspector.readers import open_checkpoint
from tests.graph.zoo import LARGE, SMALL, Branch

Edges = set[tuple[str, str]]


def export(path: Path, model: nn.Module, *args: Any, **options: Any) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(model.eval(), args, **options), path)
    return path


def drawn(path: Path) -> Graph:
    found = graph_from_pt2(PathSource(path), DEFAULT_LIMITS.metered())
    assert found is not None
    return found


def own_edges(graph: Graph) -> Edges:
    """By the names that torch has. Outputs are one node there."""
    names = {n.id: "output" if n.kind is NodeKind.OUTPUT else n.id.rpartition(":")[0] or n.id for n in graph.nodes}
    return {(names[e.source], names[e.target]) for e in graph.edges}


def torchs_edges(path: Path) -> Edges:
    """From torch.export.load: what each node of its fx graph takes, getitem taken together with what it takes from."""
    program = torch.export.load(path)
    weights = {s.arg.name for s in program.graph_signature.input_specs if s.kind.name != "USER_INPUT"}
    edges: Edges = set()
    _walk(program.graph_module, dict.fromkeys(weights), "", edges)
    return edges


def _walk(module: Any, given: dict[str, str | None], prefix: str, edges: Edges) -> list[str | None]:
    """Follow a graph. given: of its inputs, the node outside; None for a parameter. Returns what makes its outputs."""
    made: dict[Any, str | None] = {}
    ends: list[str | None] = []
    for node in module.graph.nodes:
        if node.op == "placeholder":
            made[node] = given[node.name] if node.name in given else prefix + node.name
        elif node.op == "call_function" and node.target is operator.getitem:
            made[node] = made[node.args[0]]
        elif node.op == "output":
            ends = [made[n] for n in node.all_input_nodes]
        elif node.op == "call_function":
            own = prefix + node.name
            made[node] = own
            graphs = [n for n in node.all_input_nodes if n.op == "get_attr"]
            taken = [n for n in node.all_input_nodes if n not in graphs]
            edges |= {(source, own) for n in taken if (source := made[n]) is not None}
            operands = list(node.args[-1]) if graphs else []
            for graph in graphs:
                inner = getattr(module, graph.target)
                holders = [n.name for n in inner.graph.nodes if n.op == "placeholder"]
                outside = dict(zip(holders, (made[n] for n in operands), strict=True))
                ends_inside = _walk(inner, outside, f"{own}/{graph.target}/", edges)
                edges |= {(end, own) for end in ends_inside if end is not None}
    if not prefix:
        edges |= {(end, "output") for end in ends if end is not None}
    return ends


@pytest.mark.parametrize("name", SMALL)
def test_edges_are_torchs_own(tmp_path: Path, name: str) -> None:
    make, shape = SMALL[name]
    path = export(tmp_path / "a.pt2", make(), torch.rand(shape))
    assert own_edges(drawn(path)) == torchs_edges(path)


@pytest.mark.parametrize("name", LARGE)
def test_edges_of_large_networks_are_torchs_own(tmp_path: Path, name: str, thorough: bool) -> None:
    if not thorough:
        pytest.skip("make thorough")
    make, shape = LARGE[name]
    path = export(tmp_path / "a.pt2", make(), torch.rand(shape))
    assert own_edges(drawn(path)) == torchs_edges(path)


def test_branches_of_cond_lie_in_groups_of_their_own(tmp_path: Path) -> None:
    path = export(tmp_path / "a.pt2", Branch(), torch.rand(2, 4))
    graph = drawn(path)
    assert own_edges(graph) == torchs_edges(path)
    inside = {n.group for n in graph.nodes if n.group.startswith("cond")}
    assert inside == {"cond", "cond.true_graph_0", "cond.false_graph_0"}
    assert [g.is_module for g in graph.groups if g.path.startswith("cond")] == [False] * 3


def test_a_second_call_of_a_module_has_a_group_of_its_own(tmp_path: Path) -> None:
    graph = drawn(export(tmp_path / "a.pt2", SMALL["shared"][0](), torch.rand(2, 4)))
    assert {"tied", "tied (2)", "tied (3)", "other"} <= {g.path for g in graph.groups}
    linear = [n for n in graph.nodes if n.label == "linear" and n.kind is NodeKind.OPERATOR]
    assert [n.group for n in linear] == ["tied", "other", "tied (2)", "tied (3)"]
    assert [p.name for p in linear[2].parameters] == ["tied.weight", "tied.bias"]
    assert linear[2].parameters[0].shape == (4, 4)


def test_sizes_that_are_free_stay_names(tmp_path: Path) -> None:
    class Net(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.view(x.shape[0] * 2, 3).relu()

    batch = torch.export.Dim("batch", max=64)
    graph = drawn(export(tmp_path / "a.pt2", Net(), torch.rand(4, 6), dynamic_shapes={"x": {0: batch}}))
    (first, *_) = graph.edges
    assert isinstance(first.shape, tuple) and isinstance(first.shape[0], str) and first.shape[1] == 6
    # The size is computed by operators of the graph, and what it goes into depends on them.
    labels = {n.id: n.label for n in graph.nodes}
    assert ("mul", "view") in {(labels[e.source], labels[e.target]) for e in graph.edges}


def test_nothing_of_the_authors_stack_is_shown(tmp_path: Path) -> None:
    path = export(tmp_path / "a.pt2", Branch(), torch.rand(2, 4))
    assert b"zoo.py" in _json_of(path)
    assert "zoo.py" not in repr(drawn(path))


def _json_of(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return archive.read(next(n for n in archive.namelist() if "/models/" in n))


def _changed(path: Path, out: Path, change: Any) -> Path:
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if "/models/" in name:
                program = json.loads(data)
                change(program)
                data = json.dumps(program).encode()
            new.writestr(name, data)
    return out


def test_another_schema_is_a_remark(tmp_path: Path) -> None:
    path = export(tmp_path / "a.pt2", Branch(), torch.rand(2, 4))
    other = _changed(path, tmp_path / "b.pt2", lambda p: p["schema_version"].update(major=9))
    graph = graph_of(open_checkpoint(other))
    assert graph is not None and not graph.nodes
    assert "major version 9" in graph.remarks[0]


def test_an_argument_of_an_unknown_kind_is_a_remark(tmp_path: Path) -> None:
    path = export(tmp_path / "a.pt2", SMALL["cnn"][0](), torch.rand(1, 3, 8, 8))

    def change(program: Any) -> None:
        program["graph_module"]["graph"]["nodes"][0]["inputs"][0]["arg"] = {"as_news": {"name": "x"}}

    graph = drawn(_changed(path, tmp_path / "b.pt2", change))
    assert "as_news (1x)" in " ".join(graph.remarks)
    assert all(e.target != "conv2d" for e in graph.edges)


def test_a_checkpoint_without_a_graph_has_none(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(2)}, tmp_path / "a.pth")
    assert graph_of(open_checkpoint(tmp_path / "a.pth")) is None
