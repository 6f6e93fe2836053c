"""The graph of a torch.export program, from the JSON in its archive. Nothing is evaluated, no torch is needed.

An edge leads from the node that has a name among its outputs to each that has it among its inputs. Sizes that are
expressions stay text; traces of the author's stack are not looked at.
Source: torch/_export/serde/schema.py (2.15); nn_module_stack as torch/_export/serde/serialize.py writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from inspector.checkpoint.source import ByteSource
from inspector.errors import CorruptFile
from inspector.graph.building import DEEPEST, GraphBuilder
from inspector.graph.types import Graph, GraphSource, NodeKind, Parameter, Size
from inspector.limits import Limits
from inspector.readers.archives.json_member import read_json
from inspector.readers.archives.zip_directory import find_member, read_directory
from inspector.readers.archives.zip_members import Member
from inspector.readers.formats.export.program import DTYPES, size_text
from inspector.units import counted, whole_number

SCHEMA_MAJOR = 8
_OLD = "serialized_exported_program.json"
_HIGHER_ORDER = "torch.ops.higher_order."
_MOST_LEVELS = 64
_DEEPEST_VALUE = 6
# Members of the union Argument that name values; all others but as_graph are settings.
_NAMED = ("as_tensor", "as_optional_tensor", "as_custom_obj", "as_sym_int", "as_sym_float", "as_sym_bool")
_NAMED_LISTS = ("as_tensors", "as_optional_tensors", "as_sym_ints", "as_sym_floats", "as_sym_bools",
                "as_nested_tensors")  # fmt: skip
_SETTINGS = frozenset(
    {
        "as_none", "as_int", "as_ints", "as_float", "as_floats", "as_string", "as_strings", "as_scalar_type",
        "as_memory_format", "as_layout", "as_device", "as_bool", "as_bools", "as_operator", "as_complex",
        "as_int_lists", "as_float_lists",
    }
)  # fmt: skip
# Their numbers stand for names that few know by heart.
_SPECS = {
    "parameter": "parameter_name",
    "buffer": "buffer_name",
    "tensor_constant": "tensor_constant_name",
    "custom_obj": "custom_obj_name",
}


@dataclass(slots=True, kw_only=True)
class _Scope:
    """The names of one graph. made: name -> (node, tensor). prefix: before the ids of its nodes."""

    group: str
    prefix: str
    values: dict[str, Any]
    made: dict[str, tuple[str, str]] = field(default_factory=dict)
    weights: dict[str, Parameter] = field(default_factory=dict)
    level: int = 0


@dataclass(slots=True, kw_only=True)
class _Inputs:
    """What a node is given. names: of values, in order. operands: the same behind its last graph argument."""

    names: list[str] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    settings: list[tuple[str, str]] = field(default_factory=list)
    graphs: list[dict[str, Any]] = field(default_factory=list)


def graph_from_pt2(source: ByteSource, limits: Limits) -> Graph | None:
    """The first program of an archive; None where there is none. Raises ReadError where its JSON cannot be read."""
    directory = read_directory(source, limits)
    old = find_member(directory, _OLD)
    folder = directory.members[0].name.partition("/")[0] if directory.members else ""
    programs: list[Member] = [old] if old is not None else []
    if old is None:
        programs = [m for m in directory.members if m.name.startswith(f"{folder}/models/") and m.name.endswith(".json")]
    if not programs:
        return None
    program, _ = read_json(source, programs[0], limits)
    if not isinstance(program, dict):
        raise CorruptFile(f"{source.name}: {programs[0].name[:120]} is no exported program.")
    builder = GraphBuilder(GraphSource.PT2, limits)
    if len(programs) > 1:
        name = programs[0].name.rpartition("/")[2]
        builder.remark(f"Of {counted(len(programs), 'program')} in the file the first is drawn: {name[:120]}.")
    _Program(builder).draw(program)
    return builder.finish()


class _Program:
    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self.unknown: dict[str, int] = {}
        self.loose = 0

    def draw(self, program: dict[str, Any]) -> None:
        builder = self.builder
        major = _mapping(program.get("schema_version")).get("major")
        if major != SCHEMA_MAJOR:
            shown = str(major)[:20] if isinstance(major, int) else "none"
            builder.remark(
                f"The program's schema has the major version {shown}; {SCHEMA_MAJOR} is the one that is known here. "
                "Export it again with torch 2.6 or newer to see its graph."
            )
            return
        module = _mapping(program.get("graph_module"))
        graph = _mapping(module.get("graph"))
        signature = _mapping(module.get("signature"))
        scope = _Scope(group="", prefix="", values=_mapping(graph.get("tensor_values")))
        for name, own in _weights(signature):
            scope.weights[name] = Parameter(name=own, shape=_meta(scope.values.get(name))[0])
        for argument in _items(graph.get("inputs")):
            for name in self.names(argument):
                if name not in scope.weights:
                    scope.made[name] = (builder.node(name, name=name, kind=NodeKind.INPUT), name)
        self.nodes(graph, scope)
        told = _outputs(signature)
        for number, argument in enumerate(_items(graph.get("outputs"))):
            what = told[number] if number < len(told) else ""
            for name in self.names(argument):
                attributes = [("writes", what)] if what else []
                target = builder.node(name, name=f"output {name}", kind=NodeKind.OUTPUT, attributes=attributes)
                self.connect(name, target, scope)
        if self.unknown:
            tags = ", ".join(f"{tag} ({n}x)" for tag, n in list(self.unknown.items())[:5])
            builder.remark(f"Arguments of a kind that is not known here are not drawn: {tags[:300]}.")
        if self.loose:
            builder.remark(
                f"{counted(self.loose, 'graph')} inside operators could not be matched with what they are given; their "
                "inputs stand alone."
            )

    def nodes(self, graph: dict[str, Any], scope: _Scope) -> None:
        paths: dict[str, str] = {}
        for number, node in enumerate(_items(graph.get("nodes"))):
            if self.builder.full:
                break
            if isinstance(node, dict):
                self.node(node, number, scope, paths)

    def node(self, node: dict[str, Any], number: int, scope: _Scope, paths: dict[str, str]) -> None:
        builder = self.builder
        target = str(node.get("target", ""))[:300]
        inputs = self.inputs(node.get("inputs"))
        outputs = [name for argument in _items(node.get("outputs")) for name in self.names(argument)]
        stack = _mapping(node.get("metadata")).get("nn_module_stack")
        stack = stack if isinstance(stack, str) else ""
        if stack not in paths:
            paths[stack] = self.group_of(stack, scope)
        group = paths[stack]
        # Sizes are computed by Python's own operators.
        label = target.removeprefix(_HIGHER_ORDER).removeprefix("torch.ops.").removeprefix("_operator.")
        parts = label.split(".")
        if len(parts) > 1 and not target.startswith(_HIGHER_ORDER):
            label = parts[1] if parts[0] in ("aten", "prims", "prim") else ".".join(parts[:2])
        name = node.get("name") if isinstance(node.get("name"), str) else ""
        name = scope.prefix + (name or (outputs[0] if outputs else f"{label} {number}"))
        if inputs.graphs and scope.level < min(_MOST_LEVELS, DEEPEST - 2):
            group = builder.new_group(group, name.rpartition("/")[2], label)
        elif inputs.graphs:
            builder.remark("Graphs inside operators are nested too deep; the innermost are left out.")
            inputs.graphs = []
        ends = [end for inner in inputs.graphs for end in self.inner(inner, inputs, name, group, scope)]
        read = [scope.weights[n] for n in inputs.names if n in scope.weights]
        id_ = builder.node(
            label, name=name, group=group, attributes=[("target", target), *inputs.settings], parameters=read
        )
        for used in inputs.names:
            self.connect(used, id_, scope)
        for inner_name, inner_scope in ends:
            self.connect(inner_name, id_, inner_scope)
        for made in outputs:
            scope.made[made] = (id_, made)

    def inner(
        self, entry: dict[str, Any], inputs: _Inputs, name: str, group: str, outer: _Scope
    ) -> Iterator[tuple[str, _Scope]]:
        """Draw a graph that is an argument; what it puts out. Its inputs are the operands, where there are as many."""
        graph = _mapping(entry.get("graph"))
        own = str(entry.get("name", "graph"))[:100]
        scope = _Scope(
            group=self.builder.new_group(group, own),
            prefix=f"{name}/{own}/",
            values=_mapping(graph.get("tensor_values")),
            level=outer.level + 1,
        )
        taken = [name for argument in _items(graph.get("inputs")) for name in self.names(argument)]
        matched = len(taken) == len(inputs.operands)
        self.loose += bool(taken) and not matched
        for inside, outside in zip(taken, inputs.operands if matched else taken, strict=True):
            if not matched:
                node = self.builder.node(inside, name=scope.prefix + inside, kind=NodeKind.INPUT, group=scope.group)
                scope.made[inside] = (node, inside)
            elif outside in outer.weights:
                scope.weights[inside] = outer.weights[outside]
            elif outside in outer.made:
                scope.made[inside] = outer.made[outside]
        self.nodes(graph, scope)
        for argument in _items(graph.get("outputs")):
            for made in self.names(argument):
                yield made, scope

    def connect(self, name: str, target: str, scope: _Scope) -> None:
        made = scope.made.get(name)
        if made is not None:
            shape, dtype = _meta(scope.values.get(name))
            self.builder.edge(made[0], target, made[1], shape, dtype)

    def inputs(self, arguments: object) -> _Inputs:
        found = _Inputs()
        for argument in _items(arguments):
            entry = _mapping(argument)
            value = _mapping(entry.get("arg"))
            tag, content = _member(value)
            label = str(entry.get("name") or "")[:60]
            if tag == "as_graph":
                found.graphs.append(_mapping(content))
                found.operands.clear()
            elif tag in _SETTINGS:
                if label and tag != "as_none":
                    found.settings.append((label, _setting(tag, content)))
            else:
                names = self.names(value)
                found.names += names
                found.operands += names
                if label and not names and tag in ("as_sym_int", "as_sym_ints", "as_sym_float"):
                    found.settings.append((label, _setting(tag, content)))
        return found

    def names(self, argument: object, depth: int = 0) -> list[str]:
        """The names of values in an argument, in order."""
        tag, content = _member(_mapping(argument))
        if tag in _NAMED:
            inner = _mapping(content)
            if tag == "as_optional_tensor":
                inner = _mapping(inner.get("as_tensor"))
            name = inner.get("name", inner.get("as_name"))
            return [name] if isinstance(name, str) else []
        if tag in _NAMED_LISTS:
            found: list[str] = []
            rows = _items(content)
            if tag == "as_nested_tensors":
                rows = [entry for row in rows for entry in _items(row)]
            for entry in rows:
                inner = _mapping(entry)
                inner = _mapping(inner["as_tensor"]) if "as_tensor" in inner else inner
                name = inner.get("name", inner.get("as_name"))
                if isinstance(name, str):
                    found.append(name)
            return found
        if tag == "as_string_to_argument" and depth < _DEEPEST_VALUE:
            return [name for value in _mapping(content).values() for name in self.names(value, depth + 1)]
        if tag and tag not in _SETTINGS and tag != "as_graph":
            self.unknown[tag[:60]] = self.unknown.get(tag[:60], 0) + 1
        return []

    def group_of(self, stack: str, scope: _Scope) -> str:
        """The group of "L__self__,,a.Net;L__self__conv1,conv1,torch.nn.Conv2d": the key of a second call ends in @1."""
        group, above, made = scope.group, "", scope.group
        if scope.level:
            return group  # What lies in a branch or a loop body is drawn there.
        for level in stack.split(";")[: DEEPEST + 2]:
            pieces = level.split(",")
            if len(pieces) < 3:
                continue
            key, path, kind = pieces[0], pieces[1], pieces[2]
            if not path:
                self.builder.group("", kind.rpartition(".")[2])
                continue
            inside = not above or path == above or path.startswith(f"{above}.")
            rest = path[len(above) + 1 :] if above and inside else path
            if not rest or (above and not inside and above.startswith(f"{path}.")):
                continue
            again = whole_number(key.rpartition("@")[2], 1_000_000) if "@" in key else None
            made = f"{made}.{rest}" if made and inside else rest
            made += f" ({again + 1})" if again else ""
            group = made = self.builder.group(made, kind.rpartition(".")[2])
            above = path
        return group


def _weights(signature: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for spec in _items(signature.get("input_specs")):
        for key, entry in _mapping(spec).items():
            inner = _mapping(entry)
            name, own = _mapping(inner.get("arg")).get("name"), inner.get(_SPECS.get(key, ""))
            if isinstance(name, str) and isinstance(own, str):
                yield name, own


def _outputs(signature: dict[str, Any]) -> list[str]:
    """Of each output the buffer or input that it is written to, "" for the user's own."""
    told: list[str] = []
    for spec in _items(signature.get("output_specs")):
        tag, entry = next(iter(_mapping(spec).items()), ("", None))
        inner = _mapping(entry)
        name = inner.get("buffer_name", inner.get("user_input_name", inner.get("parameter_name")))
        told.append(name[:200] if isinstance(name, str) and tag != "user_output" else "")
    return told


def _member(union: dict[str, Any]) -> tuple[str, object]:
    """The member of a union that is set."""
    return next(((key, value) for key, value in union.items() if value is not None), ("", None))


def _setting(tag: str, content: object) -> str:
    if tag == "as_scalar_type" and isinstance(content, int):
        return DTYPES.get(content, str(content)[:20])
    if tag in ("as_device", "as_complex"):
        entry = _mapping(content)
        return str(entry.get("type", entry.get("real", "?")))[:60]
    if tag in ("as_sym_int", "as_sym_float"):
        entry = _mapping(content)
        return str(entry.get("as_int", entry.get("as_float", "?")))[:40]
    if isinstance(content, list):
        more = ", …" if len(content) > 16 else ""
        return f"[{', '.join(_scalar(entry) for entry in content[:16])}{more}]"
    return _scalar(content)


def _scalar(value: object) -> str:
    if isinstance(value, dict):
        return str(value.get("as_int", value.get("as_float", "?")))[:40]
    if isinstance(value, list):
        return f"[{', '.join(str(entry)[:20] for entry in value[:8] if isinstance(entry, int | float))}]"
    return str(value)[:100]


def _meta(meta: object) -> tuple[tuple[Size, ...] | None, str]:
    entry = _mapping(meta)
    sizes, code = entry.get("sizes"), entry.get("dtype")
    if not isinstance(sizes, list):
        return None, ""
    dtype = DTYPES.get(code, "") if type(code) is int else ""
    return tuple(_size(size) for size in sizes[:64]), dtype


def _size(size: object) -> Size:
    number = _mapping(size).get("as_int")
    if type(number) is int:
        return number if abs(number) < 1 << 62 else None
    text = size_text(size)
    return None if text == "?" else text


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
