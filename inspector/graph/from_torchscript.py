"""The graph of a TorchScript archive: its code followed as text, from `forward` into every method it calls.

Nothing is compiled or run. Calls of modules become groups, calls of operators nodes; what a condition of the file's own
settings decides (training, a layer that is None) is drawn as it decides. Any other branch or loop is a group with an
operator of its own, which hands out what it leaves behind. An operator that changes a tensor in place hands it to
whoever reads it afterwards under any of its names; views that share memory are not followed.
Source: torch/csrc/jit/serialization/python_print.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.checkpoint.source import ByteSource
from inspector.graph.building import GraphBuilder
from inspector.graph.script_calls import Following
from inspector.graph.script_code import Code
from inspector.graph.script_values import Data, Module, Value, makers
from inspector.graph.types import Graph, GraphSource, NodeKind
from inspector.limits import Limits
from inspector.readers.archives.zip_directory import find_member, read_directory
from inspector.readers.formats.script.members import read_program
from inspector.readers.formats.torch_archive import unpickle_member
from inspector.readers.unpickle.stand_ins import Call, GlobalRef
from inspector.units import counted

_MOST_OUTPUTS = 200
_MOST_FLAT = 10_000


def graph_from_torchscript(source: ByteSource, limits: Limits) -> Graph | None:
    """None where the archive has no objects (torch before 1.2). Raises ReadError where it cannot be read."""
    directory = read_directory(source, limits)
    prefix = directory.members[0].name.partition("/")[0] if directory.members else ""
    main = find_member(directory, f"{prefix}/data.pkl")
    if main is None:
        return None
    program = read_program(source, directory, prefix, limits)
    value = unpickle_member(source, main, limits).outcome.value
    builder = GraphBuilder(GraphSource.TORCHSCRIPT, limits)
    code = Code(program.texts)
    following = Following(builder, code)
    if isinstance(value, Call) and isinstance(value.callee, GlobalRef):
        _draw(Module("", value, value.callee.full), following)
    else:
        builder.remark("The file holds no module of the code's.")
    for problem in (*program.problems, *code.problems)[:5]:
        builder.remark(f"A part of the code could not be parsed, and what it computes is not drawn: {problem}.")
    following.report()
    return _without_unused(builder.finish())


def _draw(root: Module, following: Following) -> None:
    builder, code = following.builder, following.code
    kind = code.find_class(root.kind)
    forward = kind.methods.get("forward") if kind is not None else None
    if forward is None:
        builder.remark(f"The code has no forward of {root.kind.rpartition('.')[2][:100]}.")
        return
    builder.group("", root.kind.rpartition(".")[2])
    given: list[Value] = [root]
    names = [argument.arg for argument in forward.args.args[1:]]
    given += [Data(builder.node(name, name=name, kind=NodeKind.INPUT)) for name in names]
    result = following.start(forward, given, root)
    for name, value in _outputs(result):
        made, weights = makers([value], _MOST_FLAT)
        target = builder.node(name, name=f"output {name}", kind=NodeKind.OUTPUT, parameters=weights)
        for source in made:
            builder.edge(source, target)


def _outputs(result: Value | None) -> Sequence[tuple[str, Value]]:
    if result is None:
        return ()
    if isinstance(result, Data) and result.items is not None:
        return [(str(number), value) for number, value in enumerate(result.items[:_MOST_OUTPUTS])]
    return [("result", result)]


def _without_unused(graph: Graph) -> Graph:
    """Without operators whose results nobody uses: checks of shapes, and what only an error message would show."""
    feeds: dict[str, list[str]] = {}
    for edge in graph.edges:
        feeds.setdefault(edge.target, []).append(edge.source)
    needed = [
        n.id for n in graph.nodes if n.kind is NodeKind.OUTPUT or (n.label.endswith("_") and n.label[-2:] != "__")
    ]
    kept = set(needed)
    while needed:
        for source in feeds.get(needed.pop(), ()):
            if source not in kept:
                kept.add(source)
                needed.append(source)
    nodes = tuple(n for n in graph.nodes if n.id in kept or (n.kind is NodeKind.INPUT and not n.group))
    if len(nodes) == len(graph.nodes):
        return graph
    left_out = counted(len(graph.nodes) - len(nodes), "operator")
    return replace(
        graph,
        nodes=nodes,
        edges=tuple(e for e in graph.edges if e.source in kept and e.target in kept),
        remarks=(
            *graph.remarks,
            f"{left_out} whose results nothing uses (checks of shapes and the like) are not drawn.",
        ),
    )
