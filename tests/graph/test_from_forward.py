"""The graph of a forward pass is the one that torch.fx traces, layer by layer; views and writes are followed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn

from inspector.graph.boxes import boxes
from inspector.graph.from_forward import graph_of_forward
from inspector.graph.types import Graph, NodeKind
from tests.graph.zoo import LARGE, SMALL, Cnn

Edges = set[tuple[str, str]]


def traced(make: Callable[[], nn.Module], shape: tuple[int, ...]) -> tuple[nn.Module, Graph]:
    model = make().eval().to("meta")
    return model, graph_of_forward(model, [torch.empty(shape, device="meta")])


def contracted(edges: Edges, kept: set[str]) -> Edges:
    """An edge where a way leads from one of those kept to another, past none of them."""
    before: dict[str, set[str]] = defaultdict(set)
    for source, target in edges:
        before[target].add(source)
    found: Edges = set()
    for name in kept:
        seen: set[str] = set()
        todo = list(before[name])
        while todo:
            source = todo.pop()
            if source in kept:
                found.add((source, name))
            elif source not in seen:
                seen.add(source)
                todo += before[source]
    return found


def layers_by_fx(model: nn.Module) -> tuple[set[str], Edges]:
    """Calls of torch's own layers ("relu (2)" for the second), "x" and "output", and every edge of the trace."""
    times: Counter[str] = Counter()
    names: dict[Any, str] = {}
    calls: set[str] = set()
    traced_graph = fx.symbolic_trace(model).graph
    for node in traced_graph.nodes:
        names[node] = f"%{node.name}"
        if node.op == "call_module":
            times[node.target] += 1
            names[node] = f"{node.target} ({times[node.target]})" if times[node.target] > 1 else node.target
            calls.add(names[node])
        elif node.op in ("placeholder", "output"):
            names[node] = node.op
            calls.add(node.op)
    return calls, {(names[taken], names[node]) for node in traced_graph.nodes for taken in node.all_input_nodes}


def layers_of(graph: Graph, calls: set[str]) -> Edges:
    names = {}
    for node in graph.nodes:
        names[node.id] = node.group if node.group in calls else f"%{node.id}"
        if node.kind is not NodeKind.OPERATOR:
            names[node.id] = "placeholder" if node.kind is NodeKind.INPUT else "output"
    return {(names[e.source], names[e.target]) for e in graph.edges if names[e.source] != names[e.target]}


def compare(make: Callable[[], nn.Module], shape: tuple[int, ...]) -> None:
    model, graph = traced(make, shape)
    calls, edges = layers_by_fx(model)
    drawn = {node.group for node in graph.nodes} | {"placeholder", "output"}
    silent = {name for name in calls if name not in drawn}
    kinds = {type(model.get_submodule(name.partition(" ")[0])).__name__ for name in silent}
    assert kinds <= {"Dropout", "Identity", "StochasticDepth"}, "layers that call no operator in eval mode"
    kept = calls - silent
    assert contracted(layers_of(graph, kept), kept) == contracted(edges, kept)


@pytest.mark.parametrize("name", ["cnn", "dense", "shared"])
def test_edges_between_layers_are_those_of_fx(name: str) -> None:
    compare(*SMALL[name])


@pytest.mark.parametrize("name", [name for name in LARGE if name not in ("vit", "swin_t")])
def test_edges_between_layers_of_large_networks_are_those_of_fx(name: str, thorough: bool) -> None:
    if not thorough:
        pytest.skip("make thorough")
    compare(*LARGE[name])


def pairs(forward: Callable[[Tensor], Any], shape: tuple[int, ...] = (4, 4)) -> Edges:
    class Net(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return forward(x)

    graph = traced(Net, shape)[1]
    labels = {n.id: n.label for n in graph.nodes}
    return {(labels[e.source], labels[e.target]) for e in graph.edges}


def test_a_tensor_written_in_place_comes_from_what_wrote_it() -> None:
    def forward(x: Tensor) -> Tensor:
        y = x.exp()
        y.add_(1)
        return y.sin()

    assert pairs(forward) == {("x", "exp"), ("exp", "add_"), ("add_", "sin"), ("sin", "output")}


def test_what_a_view_was_written_through_is_read_from_both() -> None:
    def forward(x: Tensor) -> Tensor:
        y = x.exp()
        y[0].mul_(2)
        return y.sin()

    found = pairs(forward)
    assert {("exp", "select"), ("select", "mul_"), ("mul_", "sin"), ("exp", "sin")} <= found

    def whole(x: Tensor) -> Tensor:
        y = x.exp()
        y.view(-1).mul_(2)
        return y.sin()

    found = pairs(whole)
    assert ("mul_", "sin") in found and ("exp", "sin") not in found


def test_a_module_called_again_has_a_group_for_each_call() -> None:
    graph = traced(*SMALL["shared"])[1]
    linear = [node for node in graph.nodes if node.label == "addmm"]
    assert [node.group for node in linear] == ["tied", "other", "tied (2)", "tied (3)"]
    assert {p.name: p.shape for p in linear[3].parameters} == {"tied.weight": (4, 4), "tied.bias": (4,)}


def test_several_inputs_have_the_names_of_forward() -> None:
    class Net(nn.Module):
        def forward(self, left: Tensor, right: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
            assert mask is not None
            return {"sum": (left + right) * mask, "left": left}

    a, b, c = (torch.empty(2, device="meta") for _ in range(3))
    graph = graph_of_forward(Net(), [a, b], {"mask": c})
    assert [n.id for n in graph.nodes if n.kind is NodeKind.INPUT] == ["left", "right", "mask"]
    assert [n.id for n in graph.nodes if n.kind is NodeKind.OUTPUT] == ["output", "output 1"]
    assert ("left", "output 1") in {(e.source, e.target) for e in graph.edges}


def test_a_tensor_of_unknown_origin_is_said() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.empty(4, device="meta")

        def forward(self, x: Tensor) -> Tensor:
            return x * self.scale

    graph = graph_of_forward(Net(), [torch.empty(4, device="meta")])
    assert "1 tensor" in graph.remarks[0]


def test_blocks_of_the_drawing_are_folded_by_shape() -> None:
    root = boxes(traced(Cnn, (1, 3, 8, 8))[1])
    body = next(box for box in root.children if box.path == "body")
    assert [(child.label, child.kind, child.repeat) for child in body.children] == [
        ("0", "Residual", 4),
        ("4", "Residual", 1),
    ]
