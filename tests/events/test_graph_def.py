"""A graph as TensorBoard reads it: names that are its own, and edges that lead where ours do."""

from __future__ import annotations

import re

import pytest

from inspector.events.graph_def import graph_def
from inspector.graph.types import Edge, Graph, GraphSource, Group, Node, NodeKind, Parameter

graph_pb2 = pytest.importorskip("tensorboard.compat.proto.graph_pb2")

# tensorflow/core/graph/validate and python's ops.py: names of operators.
LEGAL = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")


def _node(ident: str, label: str, group: str = "", kind: NodeKind = NodeKind.OPERATOR, *names: str) -> Node:
    parameters = tuple(Parameter(name=name, shape=(4, 3)) for name in names)
    return Node(
        id=ident, label=label, kind=kind, group=group, parameters=parameters, attributes=(("stride", "[2, 2]"),)
    )


NODES = (
    _node("x", "input", kind=NodeKind.INPUT),
    _node("head", "relu"),
    _node("conv", "conv2d", "layer1.0", NodeKind.OPERATOR, "layer1.0.weight", "layer1.0.bias"),
    # Nodes that are called as a box, before and behind it.
    _node("layer1", "relu"),
    _node("linear", "linear", "head"),
    # Two whose legal names are the same, and one with signs that mean something to TensorBoard.
    _node("a b", "add"),
    _node("a?b", "add"),
    _node("^out:0/ü", "output", kind=NodeKind.OUTPUT),
)
EDGES = (
    Edge(source="x", target="conv", shape=(1, 3, 8, "s0")),
    Edge(source="conv", target="layer1", shape=(1, 4, 8, 8)),
    Edge(source="layer1", target="a b"),
    Edge(source="conv", target="a?b"),
    Edge(source="a b", target="a?b"),
    Edge(source="a?b", target="^out:0/ü"),
)
GRAPH = Graph(origin=GraphSource.ONNX, nodes=NODES, groups=(Group(path="layer1.0"),), edges=EDGES)


def test_the_graph_is_tensorflow_s() -> None:
    parsed = graph_pb2.GraphDef.FromString(graph_def(GRAPH))
    nodes = {node.name: node for node in parsed.node}
    assert len(nodes) == len(parsed.node) == len(NODES) + 2
    assert all(LEGAL.fullmatch(name) for name in nodes), list(nodes)
    boxes = {"/".join(name.split("/")[:n]) for name in nodes for n in range(1, name.count("/") + 1)}
    assert not boxes & nodes.keys()
    assert all(name in nodes for node in parsed.node for name in node.input)
    conv = nodes["layer1/0/conv"]
    assert conv.op == "conv2d" and list(conv.input) == ["x", "layer1/0/weight", "layer1/0/bias"]
    assert conv.attr["stride"].s == b"[2, 2]"
    assert [d.size for d in conv.attr["_output_shapes"].list.shape[0].dim] == [1, 4, 8, 8]
    assert nodes["x"].op == "Placeholder"
    # A size that is only named is not known.
    assert [d.size for d in nodes["x"].attr["_output_shapes"].list.shape[0].dim] == [1, 3, 8, -1]
    assert nodes["layer1/0/weight"].attr["name"].s == b"layer1.0.weight"
    assert [list(nodes[name].input) for name in ("a_b", "a_b_1")] == [["layer1_1"], ["layer1/0/conv", "a_b"]]
    assert parsed.versions.producer > 0


def test_a_tensor_that_two_read_is_one_node() -> None:
    nodes = (_node("a", "linear", "", NodeKind.OPERATOR, "w"), _node("b", "linear", "", NodeKind.OPERATOR, "w"))
    parsed = graph_pb2.GraphDef.FromString(graph_def(Graph(origin=GraphSource.ONNX, nodes=nodes, groups=(), edges=())))
    assert [(node.name, list(node.input)) for node in parsed.node] == [("w", []), ("a", ["w"]), ("b", ["w"])]
