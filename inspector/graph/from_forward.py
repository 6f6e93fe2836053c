"""The graph of a network in hand: one forward pass without values, watched.

Nodes are operators, as torch's dispatcher meets them under the names of its Python interface; groups are calls of
modules. Which tensor is which is told by identity. An operator that writes into a tensor hands it to whoever reads it
afterwards; whoever reads another view of the same memory takes it from both.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from inspector.forward.watch import Call, ForwardError, Listener, Operation, tensors_in, watch
from inspector.graph.building import GraphBuilder
from inspector.graph.types import Graph, GraphSource, NodeKind, Parameter
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.units import counted

__all__ = ["ForwardError", "graph_of_forward"]

# They give a number or nothing to the program, not to the network.
_NO_PART = ("aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal")


def graph_of_forward(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, *, limits: Limits = DEFAULT_LIMITS
) -> Graph:
    """The graph of one pass of `model(*args, **kwargs)`.

    model, args, kwargs: best on the meta device, where nothing is computed. Raises ForwardError for whatever the pass
    raises.
    """
    named = dict(kwargs or {})
    listener = _Drawing(model, args, named, limits.metered())
    # Composite operators as one: `linear`, not a transposition and a product.
    output = watch(model, args, named, listener, whole=lambda operator: True)
    return listener.finish(output)


class _Drawing(Listener):
    def __init__(self, model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], limits: Limits) -> None:
        self.builder = GraphBuilder(GraphSource.FORWARD, limits)
        self.builder.group("", type(model).__name__)
        # What a tensor is made by: (node, name) each. Tensors are kept, so that none gets another's identity.
        self.made: dict[int, list[tuple[str, str]]] = {}
        self.kept: dict[int, Tensor] = {}
        self.views: dict[int, list[Tensor]] = defaultdict(list)
        self.groups: dict[int, str] = {}
        self.times: dict[tuple[str, str], int] = {}
        self.unknown: set[int] = set()
        self.weights = {
            id(tensor): Parameter(name=name, shape=tuple(tensor.shape))
            for name, tensor in (*model.named_buffers(), *model.named_parameters())
        }
        for name, value in _named(model, args, kwargs):
            for number, tensor in enumerate(tensors_in(value)):
                label = f"{name}.{number}" if number else name
                self.keep(tensor, [(self.builder.node(label, name=label, kind=NodeKind.INPUT), label)])

    def enter(self, call: Call) -> None:
        if call.inside is None:
            self.groups[call.number] = ""
            return
        above, group = call.inside.path, self.groups[call.inside.number]
        inside = not above or call.path.startswith(f"{above}.")
        rest = call.path[len(above) + 1 if above else 0 :] if inside else call.path
        rest = rest or type(call.module).__name__
        path = f"{group}.{rest}" if group and inside else rest
        times = self.times[path, call.path] = self.times.get((path, call.path), 0) + 1
        path += f" ({times})" if times > 1 else ""
        self.groups[call.number] = self.builder.group(path, type(call.module).__name__)

    def operation(self, operation: Operation) -> None:
        schema = operation.operator._schema
        if schema.name in _NO_PART or self.builder.full:
            return
        given = [*zip(schema.arguments, operation.args, strict=False)]
        by_name = {argument.name: argument for argument in schema.arguments}
        given += [(by_name[name], value) for name, value in operation.kwargs.items() if name in by_name]
        tensors = [tensor for _, value in given for tensor in tensors_in(value)]
        read = [self.weights[id(tensor)] for tensor in tensors if id(tensor) in self.weights]
        if len(read) == len(tensors) == 1 and all(_is_view(value) for value in schema.returns):
            # Another view of a parameter is that parameter.
            for tensor in tensors_in(operation.output):
                self.weights[id(tensor)] = read[0]
                self.kept[id(tensor)] = tensor
            return
        settings = [(a.name, str(v)[:100]) for a, v in given if v is not None and not any(True for _ in tensors_in(v))]
        node = self.builder.node(
            schema.name.removeprefix("aten::"),
            group=self.groups[operation.inside.number] if operation.inside is not None else "",
            attributes=[("target", str(operation.operator)), *settings],
            parameters=read,
        )
        if not node:
            return
        for tensor in tensors:
            self.connect(tensor, node)
        written = {
            id(tensor)
            for argument, value in given
            if argument.alias_info is not None and argument.alias_info.is_write
            for tensor in tensors_in(value)
        }
        for tensor in tensors:
            if id(tensor) in written:
                self.write(tensor, node)
        for number, tensor in enumerate(tensors_in(operation.output)):
            if id(tensor) not in written:
                self.keep(tensor, [(node, f"{node}.{number}" if number else node)])

    def connect(self, tensor: Tensor, node: str) -> None:
        made = self.made.get(id(tensor))
        if made is None:
            if id(tensor) not in self.weights:
                self.unknown.add(id(tensor))
                self.kept[id(tensor)] = tensor
            return
        for source, name in made:
            self.builder.edge(source, node, name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))

    def keep(self, tensor: Tensor, made: list[tuple[str, str]]) -> None:
        self.made[id(tensor)] = made
        self.kept[id(tensor)] = tensor
        memory = _memory_of(tensor)
        if memory is not None:
            self.views[memory].append(tensor)

    def write(self, tensor: Tensor, node: str) -> None:
        """What is read of this memory from now on was written by the node, whole or in part."""
        memory = _memory_of(tensor)
        for other in self.views[memory] if memory is not None else ():
            if other is not tensor:
                whole = other.numel() == tensor.numel()
                self.made[id(other)] = [*([] if whole else self.made[id(other)]), (node, node)]
        known = id(tensor) in self.made
        self.made[id(tensor)] = [(node, node)]
        if not known:
            self.keep(tensor, [(node, node)])

    def finish(self, output: Any) -> Graph:
        for number, tensor in enumerate(tensors_in(output)):
            name = f"output {number}" if number else "output"
            read = [self.weights[id(tensor)]] if id(tensor) in self.weights else []
            self.connect(tensor, self.builder.node(name, name=name, kind=NodeKind.OUTPUT, parameters=read))
        if self.unknown:
            self.builder.remark(
                f"{counted(len(self.unknown), 'tensor')} that no operator of this pass made (plain attributes, or "
                "made on another device) are not drawn."
            )
        graph = self.builder.finish()
        joined = {end for edge in graph.edges for end in (edge.source, edge.target)}
        # Memory that an operator asked for and nothing reads.
        alone = {n.id for n in graph.nodes if n.kind is NodeKind.OPERATOR and not n.parameters and n.id not in joined}
        return replace(graph, nodes=tuple(node for node in graph.nodes if node.id not in alone))


def _is_view(returned: Any) -> bool:
    return returned.alias_info is not None and not returned.alias_info.is_write


def _memory_of(tensor: Tensor) -> int | None:
    """What tells the memory of a tensor from that of others; None for layouts without one."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return None


def _named(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Each argument by its name in forward."""
    try:
        bound = inspect.signature(model.forward).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return [*((f"input {number}", value) for number, value in enumerate(args)), *kwargs.items()]
    return list(bound.arguments.items())
