"""The graph of an ONNX model is the one that the onnx package reads, edge by edge, bodies and functions too."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.inliner
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from inspector.checkpoint.source import BufferSource, PathSource
from inspector.graph import building
from inspector.graph.boxes import boxes
from inspector.graph.from_onnx import graph_from_onnx
from inspector.graph.sources import graph_of
from inspector.graph.types import Graph, NodeKind
from inspector.limits import DEFAULT_LIMITS
from inspector.readers import open_checkpoint
from tests.graph.zoo import LARGE, SMALL

FLOAT = TensorProto.FLOAT
# (label, ...) of the operators in their order, and (from, to, tensor) by their places; an input or output by its name.
Found = tuple[list[str], set[tuple[object, object, str]]]


def drawn(model: Any) -> Graph:
    data = model.read_bytes() if isinstance(model, Path) else model.SerializeToString()
    found = graph_from_onnx(BufferSource(data), DEFAULT_LIMITS.metered())
    assert found is not None
    return found


def own_edges(graph: Graph) -> Found:
    operators = [n for n in graph.nodes if n.kind in (NodeKind.OPERATOR, NodeKind.CONSTANT)]
    places: dict[str, object] = {n.id: number for number, n in enumerate(operators)}
    for node in graph.nodes:
        if node.kind in (NodeKind.INPUT, NodeKind.OUTPUT):
            places[node.id] = (node.kind.value, node.label)
    edges = {(places[e.source], places[e.target], e.tensor) for e in graph.edges}
    return [n.label for n in operators], edges


def onnxs_edges(model: onnx.ModelProto) -> Found:
    labels: list[str] = []
    edges: set[tuple[object, object, str]] = set()

    def walk(graph: Any, around: dict[str, object], given: list[str]) -> list[object]:
        weights = {i.name for i in graph.initializer}
        made = dict(around)
        made.update(dict.fromkeys(weights))
        for number, port in enumerate(graph.input):
            if port.name not in weights:
                outside = given[number] if number < len(given) else ""
                made[port.name] = made[outside] if outside else (("input", port.name), port.name)
        for node in graph.node:
            ends: list[object] = []
            for attribute in node.attribute:
                for inner in [attribute.g, *attribute.graphs] if attribute.type in (5, 10) else []:
                    if attribute.type == 5 or inner.node:
                        ends += walk(inner, made, _given(node, inner))
            own = len(labels)
            labels.append(node.op_type if not node.domain else f"{node.domain}::{node.op_type}")
            for source in [*(made.get(name) for name in node.input), *ends]:
                if source is not None and source[0] is not None:  # type: ignore[index]
                    edges.add((source[0], own, source[1]))  # type: ignore[index]
            made.update({name: (own, name) for name in node.output})
        ends = [made.get(port.name) for port in graph.output]
        if not around and not given:
            for port, source in zip(graph.output, ends, strict=True):
                if source is not None:
                    edges.add((source[0], ("output", port.name), source[1]))  # type: ignore[index]
        return ends

    walk(model.graph, {}, [])
    return labels, edges


def _given(node: Any, inner: Any) -> list[str]:
    if node.op_type == "Loop":
        return ["", *node.input[1:]]
    return list(node.input) if node.op_type == "Scan" else []


def export(path: Path, model: nn.Module, shape: tuple[int, ...], **options: Any) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model.eval(), (torch.rand(shape),), path, dynamo=False, verbose=False, **options)
    return path


@pytest.mark.parametrize("name", SMALL)
def test_edges_are_those_of_the_onnx_package(tmp_path: Path, name: str) -> None:
    make, shape = SMALL[name]
    path = export(tmp_path / "a.onnx", make(), shape)
    assert own_edges(drawn(path)) == onnxs_edges(onnx.load(path))


@pytest.mark.parametrize("name", LARGE)
def test_edges_of_large_networks_are_those_of_the_onnx_package(tmp_path: Path, name: str, thorough: bool) -> None:
    if not thorough:
        pytest.skip("make thorough")
    make, shape = LARGE[name]
    path = export(tmp_path / "a.onnx", make(), shape)
    assert own_edges(drawn(path)) == onnxs_edges(onnx.load(path))


def _model(nodes: list[Any], inputs: list[str], outputs: list[str], weights: dict[str, Any], **more: Any) -> Any:
    ports = [[helper.make_tensor_value_info(name, FLOAT, [2, 3]) for name in names] for names in (inputs, outputs)]
    initializers = [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()]
    graph = helper.make_graph(nodes, "g", ports[0], ports[1], initializers)
    return helper.make_model(graph, **more)


def _body(nodes: list[Any], inputs: list[str], outputs: list[str], name: str = "body") -> Any:
    ports = [[helper.make_tensor_value_info(n, FLOAT, None) for n in names] for names in (inputs, outputs)]
    return helper.make_graph(nodes, name, ports[0], ports[1])


def control_flow() -> Any:
    """If with a value from outside, Loop with one too, Scan, and a Loop within the If."""
    inner = _body(
        [helper.make_node("Mul", ["carried", "x"], ["next"]), helper.make_node("Identity", ["go"], ["on"])],
        ["turn", "go", "carried"],
        ["on", "next"],
    )
    then = _body([helper.make_node("Loop", ["most", "", "h"], ["looped"], body=inner)], [], ["looped"], "then")
    other = _body([helper.make_node("Neg", ["x"], ["negative"])], [], ["negative"], "else")
    scan = _body(
        [helper.make_node("Add", ["state", "slice"], ["sum"]), helper.make_node("Identity", ["sum"], ["row"])],
        ["state", "slice"],
        ["sum", "row"],
    )
    nodes = [
        helper.make_node("Relu", ["x"], ["h"], name="relu"),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other, name="choose"),
        helper.make_node("Scan", ["h", "y"], ["last", "rows"], body=scan, num_scan_inputs=1),
        helper.make_node("Add", ["rows", "w"], ["out"]),
    ]
    return _model(nodes, ["x", "c"], ["out", "last"], {"w": np.zeros(3, np.float32), "most": np.int64(3)})


def test_bodies_of_if_loop_and_scan_are_inside_a_group_of_theirs() -> None:
    model = control_flow()
    graph = drawn(model)
    assert own_edges(graph) == onnxs_edges(model)
    groups = {n.group for n in graph.nodes if n.label == "Mul"}
    assert groups == {"choose.then_branch.looped.body"}
    # Edges lead forward, so that no layout meets a circle.
    places = {n.id: number for number, n in enumerate(graph.nodes)}
    assert all(places[e.source] < places[e.target] for e in graph.edges)


def functions() -> Any:
    double = helper.make_function("own", "Double", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], OPSETS)
    nodes = [
        helper.make_node("Double", ["a"], ["m"], domain="own"),
        helper.make_node("Relu", ["m"], ["n"]),
        helper.make_node("Mul", ["n", "w"], ["b"]),
    ]
    twice = helper.make_function("own", "Twice", ["a", "w"], ["b"], nodes, OPSETS)
    calls = [
        helper.make_node("Twice", ["x", "w"], ["y"], domain="own", name="first"),
        helper.make_node("Twice", ["y", "x"], ["z"], domain="own", name="second"),
    ]
    return _model(calls, ["x"], ["z"], {"w": np.zeros(3, np.float32)}, functions=[double, twice], opset_imports=OPSETS)


OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]


def test_functions_of_the_models_own_are_drawn_where_they_are_called() -> None:
    model = functions()
    graph = drawn(model)
    labels, edges = own_edges(graph)
    inlined = onnxs_edges(onnx.inliner.inline_local_functions(model))
    assert labels == inlined[0]
    assert {edge[:2] for edge in edges} == {edge[:2] for edge in inlined[1]}
    assert {g.path: g.kind for g in graph.groups}["second.m"] == "Double"


def test_functions_that_call_each_other_without_end_are_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "MOST_NODES", 2000)
    node = helper.make_node("Again", ["a"], ["b"], domain="own")
    again = helper.make_function("own", "Again", ["a"], ["b"], [node, node], OPSETS)
    call = helper.make_node("Again", ["x"], ["y"], domain="own")
    graph = drawn(_model([call], ["x"], ["y"], {}, functions=[again], opset_imports=OPSETS))
    assert len(graph.nodes) == 2000
    assert any("Only the first 2,000" in remark for remark in graph.remarks)


def test_modules_come_from_what_torchs_exporter_notes() -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="node_conv2d")
    for key, value in (
        ("name_scopes", "['', 'layer1', 'layer1.0', 'layer1.0.conv1', 'conv2d']"),
        ("class_hierarchy", "['m.ResNet', 'm.Sequential', 'm.BasicBlock', 'torch.nn.Conv2d', 'aten.conv2d.default']"),
    ):
        node.metadata_props.add(key=f"pkg.torch.onnx.{key}", value=value)
    graph = drawn(_model([node], ["x"], ["y"], {"w": np.zeros((1, 1, 3, 3), np.float32)}))
    assert {g.path: g.kind for g in graph.groups} == {
        "": "ResNet",
        "layer1": "Sequential",
        "layer1.0": "BasicBlock",
        "layer1.0.conv1": "Conv2d",
    }
    (conv,) = [n for n in graph.nodes if n.label == "Conv"]
    assert conv.group == "layer1.0.conv1"
    assert [(p.name, p.shape) for p in conv.parameters] == [("w", (1, 1, 3, 3))]


def test_names_of_torchs_older_exporter_give_the_modules(tmp_path: Path) -> None:
    make, shape = SMALL["cnn"]
    graph = drawn(export(tmp_path / "a.onnx", make(), shape))
    paths = {n.group for n in graph.nodes}
    assert {"stem", "body.0.conv1", "body.4.shortcut", "head.2"} <= paths
    assert not any("body.body" in path for path in paths)


def test_constants_are_nodes_of_the_graph_and_no_boxes() -> None:
    nodes = [
        helper.make_node("Constant", [], ["two"], value=numpy_helper.from_array(np.float32(2))),
        helper.make_node("Mul", ["x", "two"], ["y"]),
    ]
    graph = drawn(_model(nodes, ["x"], ["y"], {}))
    assert [n.kind for n in graph.nodes].count(NodeKind.CONSTANT) == 1
    assert [box.label for box in boxes(graph).children] == ["x", "Mul", "y"]


def test_data_in_another_file_are_not_taken_for_the_graph(tmp_path: Path) -> None:
    make, shape = SMALL["cnn"]
    path = export(tmp_path / "a.onnx", make(), shape)
    model = onnx.load(path)
    onnx.save(model, tmp_path / "b.onnx", save_as_external_data=True, location="b.data", size_threshold=0)
    checkpoint = open_checkpoint(tmp_path / "b.onnx")
    assert checkpoint.source.size > checkpoint.origin.nbytes
    graph = graph_of(checkpoint)
    assert graph is not None and not graph.remarks
    assert own_edges(graph) == onnxs_edges(model)


def test_a_cut_file_gives_what_stands_before_the_cut(tmp_path: Path) -> None:
    make, shape = SMALL["cnn"]
    path = export(tmp_path / "a.onnx", make(), shape)
    whole = graph_from_onnx(PathSource(path), DEFAULT_LIMITS.metered())
    cut = graph_from_onnx(BufferSource(path.read_bytes()[:1500]), DEFAULT_LIMITS.metered())
    assert whole is not None and cut is not None
    assert 0 < len(cut.nodes) < len(whole.nodes)
    assert "only so far" in cut.remarks[0]
