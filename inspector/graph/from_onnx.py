"""The graph of an ONNX model: its own nodes and names, nothing inferred.

Initializers are parameters. Calls of the model's own functions are drawn as groups, and the bodies of If, Loop and Scan
inside a group of the operator. Modules come from what torch's exporter notes beside a node, else from names that are
paths ("/layer1/layer1.0/conv1/Conv").
Source: onnx/onnx.proto; docs/Operators.md (If, Loop, Scan) for what a body is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from inspector.checkpoint.source import ByteSource
from inspector.graph.building import DEEPEST, GraphBuilder
from inspector.graph.onnx_messages import DEEPEST as MOST_BODIES
from inspector.graph.onnx_messages import UNKNOWN, Body, MessageReader, Meta, Model, Op
from inspector.graph.types import Graph, GraphSource, NodeKind, Parameter
from inspector.limits import Limits
from inspector.readers.cursor import Cursor
from inspector.readers.formats.onnx.protobuf import Walk

_STANDARD = ("", "ai.onnx")


@dataclass(frozen=True, slots=True)
class _Made:
    """A value: the node that makes it, or the parameter that it is."""

    node: str = ""
    weight: Parameter | None = None
    tensor: str = ""
    meta: Meta = UNKNOWN


@dataclass(slots=True, kw_only=True)
class _Scope:
    """The names of one graph, and those around it. group: what its nodes lie in; prefix: before their ids."""

    body: Body
    group: str = ""
    prefix: str = ""
    level: int = 0
    above: _Scope | None = None
    made: dict[str, _Made] = field(default_factory=dict)

    def find(self, name: str) -> _Made | None:
        """Bodies see the names around them. At most a few levels."""
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.made:
                return scope.made[name]
            if name in scope.body.weights:
                return _Made(weight=Parameter(name=name, shape=scope.body.weights[name]))
            scope = scope.above
        return None


def graph_from_onnx(source: ByteSource, limits: Limits) -> Graph | None:
    """None where the model has no graph. Raises LimitExceeded."""
    model = MessageReader(Walk(Cursor(source), limits.memo), limits).read()
    if model.graph is None:
        return None
    builder = GraphBuilder(GraphSource.ONNX, limits)
    _Drawing(builder, model).draw(model.graph)
    return builder.finish()


class _Drawing:
    def __init__(self, builder: GraphBuilder, model: Model) -> None:
        self.builder = builder
        self.functions = model.functions
        self.paths: dict[str, str] = {}
        if model.problem:
            builder.remark(f"The graph could be followed only so far: {model.problem}.")
        if model.too_deep:
            builder.remark(f"Graphs are nested deeper than {MOST_BODIES} levels; the innermost are left out.")

    def draw(self, body: Body) -> None:
        builder = self.builder
        scope = _Scope(body=body)
        for name in body.inputs:
            if name not in body.weights:
                node = builder.node(name, name=name, kind=NodeKind.INPUT)
                scope.made[name] = _Made(node=node, tensor=name, meta=body.values.get(name, UNKNOWN))
        self.ops(scope)
        for name in body.outputs:
            made = scope.find(name)
            read = [made.weight] if made is not None and made.weight else []
            target = builder.node(name, name=f"output {name}", kind=NodeKind.OUTPUT, parameters=read)
            self.connect(name, target, scope)

    def ops(self, scope: _Scope) -> None:
        for op in scope.body.ops:
            if self.builder.full:
                return
            called = self.functions.get(op.key)
            if called is not None and scope.level < MOST_BODIES:
                self.call(op, called, scope)
            else:
                if called is not None:
                    self.builder.remark(f"Functions call each other deeper than {MOST_BODIES} levels.")
                self.op(op, scope)

    def op(self, op: Op, scope: _Scope) -> None:
        builder = self.builder
        name = scope.prefix + _name_of(op)
        group = self.group_of(op, scope)
        scopes: list[_Scope] = []
        if op.bodies and scope.level < MOST_BODIES:
            group = builder.new_group(group, _leaf(_name_of(op)), op.operator)
            for label, body in op.bodies:
                scopes.append(self.body(op, label, body, name, group, scope))
        weights = [made.weight for used in op.inputs if (made := scope.find(used)) is not None and made.weight]
        is_constant = op.operator == "Constant" and op.domain in _STANDARD
        label = op.operator if op.domain in _STANDARD else f"{op.domain}::{op.operator}"
        kind = NodeKind.CONSTANT if is_constant else NodeKind.OPERATOR
        node = builder.node(label, name=name, kind=kind, group=group, attributes=op.settings, parameters=weights)
        for used in op.inputs:
            self.connect(used, node, scope)
        for inner in scopes:
            for used in inner.body.outputs:
                self.connect(used, node, inner)
        for out in op.outputs:
            if out:
                scope.made[out] = _Made(node=node, tensor=out, meta=scope.body.values.get(out, UNKNOWN))

    def body(self, op: Op, label: str, body: Body, name: str, group: str, above: _Scope) -> _Scope:
        """Draw a graph inside an operator: its inputs are what the operator is given, where that is known."""
        scope = _Scope(
            body=body,
            group=self.builder.new_group(group, label),
            prefix=f"{name}/{label}/",
            level=above.level + 1,
            above=above,
        )
        given = _given(op, body)
        for inside, outside in zip(body.inputs, given, strict=True):
            meta = body.values.get(inside, UNKNOWN)
            made = above.find(outside) if outside else None
            if made is None:
                node = self.builder.node(inside, name=scope.prefix + inside, kind=NodeKind.INPUT, group=scope.group)
                made = _Made(node=node, tensor=inside, meta=meta)
            scope.made[inside] = made
        self.ops(scope)
        return scope

    def call(self, op: Op, called: Body, scope: _Scope) -> None:
        """A function of the model's own, drawn where it is called. Its body sees nothing but what it is given."""
        name = scope.prefix + _name_of(op)
        group = self.builder.new_group(self.group_of(op, scope), _leaf(_name_of(op)), called.name)
        inner = _Scope(body=called, group=group, prefix=f"{name}/", level=scope.level + 1)
        for position, inside in enumerate(called.inputs):
            outside = op.inputs[position] if position < len(op.inputs) else ""
            made = scope.find(outside) if outside else None
            if made is not None:
                inner.made[inside] = made
        self.ops(inner)
        for inside, outside in zip(called.outputs, op.outputs, strict=False):
            made = inner.find(inside)
            if outside and made is not None:
                scope.made[outside] = made

    def connect(self, name: str, target: str, scope: _Scope) -> None:
        made = scope.find(name) if name else None
        if made is not None and made.node:
            meta = scope.body.values.get(name, UNKNOWN)
            meta = meta if meta.shape is not None else made.meta
            self.builder.edge(made.node, target, made.tensor, meta.shape, meta.dtype)

    def group_of(self, op: Op, scope: _Scope) -> str:
        """The module that an operator belongs to. What lies in a body or a function is drawn there."""
        if scope.level:
            return scope.group
        if len(op.scopes) > 1:
            paths = _scope_paths(op.scopes[:-1])
            for number, path in enumerate(paths):
                kind = op.classes[number].rpartition(".")[2] if number < len(op.classes) else ""
                self.builder.group(path, kind)
            return self.builder.group(paths[-1])
        above = op.name.strip("/").rpartition("/")[0] if "/" in op.name else ""
        if above not in self.paths:
            self.paths[above] = self.builder.group(_module_path(above.split("/"))) if above else ""
        return self.paths[above]


def _given(op: Op, body: Body) -> Sequence[str]:
    """Of each input of a body, what the operator is given for it; "" for what the operator makes itself."""
    if op.operator == "Loop" and op.domain in _STANDARD:
        # (turn, whether to go on, carried ...) of (most turns, whether to begin, carried ...)
        rest = ["", *op.inputs[1:]]
        return [rest[n] if n < len(rest) else "" for n in range(len(body.inputs))]
    if len(op.inputs) == len(body.inputs) and not (op.operator == "If" and op.domain in _STANDARD):
        return op.inputs
    return [""] * len(body.inputs)


def _name_of(op: Op) -> str:
    return op.name or next((out for out in op.outputs if out), "") or op.operator


def _leaf(name: str) -> str:
    return name.strip("/").rpartition("/")[2] or name


def _module_path(parts: Iterable[str]) -> str:
    """ "layer1", "layer1.0", "conv1" -> "layer1.0.conv1": torch's older exporter repeats what is above."""
    path = last = ""
    for part in list(parts)[:DEEPEST]:
        if not part:
            continue
        own = part
        for above in (path, last):
            if above and part.startswith(f"{above}.") and len(part) > len(above) + 1:
                own = part[len(above) + 1 :]
                break
        path = f"{path}.{own}" if path else own
        last = part
    return path


def _scope_paths(scopes: Sequence[str]) -> list[str]:
    """Full paths of modules, outermost first; "" is the network."""
    return [scope.replace("/", ".") for scope in scopes]
