"""A network's graph as TensorFlow's GraphDef, which TensorBoard's page Graphs draws.

Source: tensorflow/core/framework/graph.proto, node_def.proto, attr_value.proto. TensorBoard makes boxes of
the parts of a name between slashes, and lines of a node's inputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from inspector.events.tensors import shape_message
from inspector.events.wire import message, text, varint
from inspector.graph.types import Graph, Node, NodeKind, Parameter, Size

# TensorFlow's own rule for names of operators, slashes apart.
_OTHERS = re.compile(r"[^A-Za-z0-9._\-]")
_PRODUCER = 22
_OPERATORS = {NodeKind.INPUT: "Placeholder", NodeKind.CONSTANT: "Const", NodeKind.OUTPUT: "Identity"}
# In TensorBoard's panel a longer one only pushes the rest away.
_MOST_TEXT = 300


def graph_def(graph: Graph) -> bytes:
    """The fields of a GraphDef: operators with their shapes and settings, and a node for each tensor of the file that
    one reads, in the box of its module. Names are TensorFlow's: what it does not allow is written as "_"."""
    names = _Names({_scope(node.group) for node in graph.nodes})
    inputs: dict[str, list[str]] = {}
    shapes: dict[str, tuple[Size, ...] | None] = {}
    own = {node.id: names.take(_scope(node.group), node.id) for node in graph.nodes}
    for edge in graph.edges:
        if edge.source in own and edge.target in own:
            inputs.setdefault(edge.target, []).append(own[edge.source])
            shapes.setdefault(edge.source, edge.shape)
    tensors: dict[str, str] = {}
    parts: list[bytes] = []
    for node in graph.nodes:
        for parameter in node.parameters:
            if parameter.name not in tensors:
                tensors[parameter.name] = names.take(_scope(node.group), parameter.name.rpartition(".")[2] or "tensor")
                parts.append(_parameter(tensors[parameter.name], parameter))
            inputs.setdefault(node.id, []).append(tensors[parameter.name])
        parts.append(_node(own[node.id], node, inputs.get(node.id, ()), shapes.get(node.id)))
    return b"".join(parts) + message(4, varint(1, _PRODUCER))


class _Names:
    """Gives each node a name of its own; one that is also a box's would be drawn as the box."""

    def __init__(self, scopes: Iterable[tuple[str, ...]]) -> None:
        self._taken = {"/".join(scope[:depth]) for scope in scopes for depth in range(1, len(scope) + 1)}
        self._next: dict[str, int] = {}

    def take(self, scope: tuple[str, ...], name: str) -> str:
        wanted = "/".join((*scope, _legal(name)))
        made, number = wanted, self._next.get(wanted, 1)
        while made in self._taken:
            made = f"{wanted}_{number}"
            number += 1
        self._next[wanted] = number
        self._taken.add(made)
        return made


def _scope(group: str) -> tuple[str, ...]:
    return tuple(_legal(part) for part in group.split(".")) if group else ()


def _legal(name: str) -> str:
    """Begins with a letter, digit or point."""
    made = _OTHERS.sub("_", name)[:_MOST_TEXT] or "_"
    return made if made[0].isalnum() or made[0] == "." else f".{made}"


def _node(name: str, node: Node, inputs: Iterable[str], shape: tuple[Size, ...] | None) -> bytes:
    operator = node.label if node.kind is NodeKind.OPERATOR else _OPERATORS[node.kind]
    parts = [text(1, name), text(2, operator[:_MOST_TEXT]), *(text(3, one) for one in inputs)]
    if shape is not None:
        parts.append(_shapes(shape))
    parts += [_attribute(key[:_MOST_TEXT], message(2, value[:_MOST_TEXT].encode("utf-8", "replace")))
              for key, value in node.attributes]  # fmt: skip
    return message(1, *parts)


def _parameter(name: str, parameter: Parameter) -> bytes:
    parts = [text(1, name), text(2, "Parameter")]
    if parameter.shape is not None:
        parts.append(_shapes(parameter.shape))
    parts.append(_attribute("name", message(2, parameter.name[:_MOST_TEXT].encode("utf-8", "replace"))))
    return message(1, *parts)


def _shapes(shape: tuple[Size, ...]) -> bytes:
    """The attribute from which the sizes beside the lines come."""
    known = tuple(size if isinstance(size, int) else -1 for size in shape)
    return _attribute("_output_shapes", message(1, shape_message(7, known)))


def _attribute(key: str, value: bytes) -> bytes:
    """An entry of the map of attributes; value: the fields of an AttrValue."""
    return message(5, text(1, key), message(2, value))
