"""What an ONNX model says about itself: initializers, inputs and outputs, operators, functions.

Source: onnx/onnx.proto (ModelProto, GraphProto, NodeProto, AttributeProto, ValueInfoProto, FunctionProto). Walked field
by field; the data of an initializer are jumped over. A `Constant` node of real numbers is a weight like an initializer:
converters and frozen programs write them so. Scalars and whole numbers are shapes and steps, and `ConstantOfShape` has
one number to repeat.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from inspector.checkpoint.types import Storage, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.limits import Limits
from inspector.readers.flat import whole_text
from inspector.readers.formats.onnx.protobuf import BYTES, VARINT, BadWire, Field, Walk, signed, unpack_varints
from inspector.readers.formats.onnx.tensor import (
    ELEMENTS,
    INLINE_NBYTES,
    STRING,
    External,
    TensorMessage,
    describe,
    element_says,
    read_message,
    read_pair,
)
from inspector.units import counted, human_shape

_NAME_NBYTES = 4096
# onnxruntime's PyOp and its like: PythonOp, MY_PYTHON_OP, py_func.
_PYTHON = re.compile(r"python|(^|_)py_?(op|func|call)", re.IGNORECASE)
_DEEPEST = 24
_MOST_PORTS = 200
_MOST_NAMED = 200
_MOST_KINDS = 2000
_MOST_ATTRIBUTES = 10_000
# What a tensor's records take until the file is open (bytes), as `Limits.memory_nbytes` counts.
_TENSOR_NBYTES = 2000


@dataclass(slots=True, kw_only=True)
class OnnxModel:
    """facts: producer and versions. inputs, outputs: (name, type and shape). operators: by "domain::name".

    constants: tensors inside nodes that are not among `tensors`, and their bytes. outside: name -> place in another
    file. places: every other file that any tensor names, also one inside a node or a function. runs_python: operators
    that hand their inputs to Python code, wherever they stand.
    """

    facts: list[tuple[str, str]] = field(default_factory=list)
    properties: list[tuple[str, str]] = field(default_factory=list)
    inputs: list[tuple[str, str]] = field(default_factory=list)
    outputs: list[tuple[str, str]] = field(default_factory=list)
    operators: Counter[str] = field(default_factory=Counter)
    functions: list[str] = field(default_factory=list)
    function_count: int = 0
    subgraphs: int = 0
    constants: int = 0
    constant_nbytes: int = 0
    tensors: list[TensorInfo] = field(default_factory=list)
    storages: dict[str, Storage] = field(default_factory=dict)
    outside: dict[str, External] = field(default_factory=dict)
    places: dict[str, None] = field(default_factory=dict)
    runs_python: dict[str, None] = field(default_factory=dict)
    values: list[tuple[str, Value]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    unusable: list[str] = field(default_factory=list)
    has_graph: bool = False
    problem: str = ""


class ModelWalk:
    """Fills an `OnnxModel`. One walk, one model; BadWire and LimitExceeded leave what was found so far."""

    def __init__(self, walk: Walk, limits: Limits) -> None:
        self.walk = walk
        self.limits = limits
        self.model = OnnxModel()
        self.budget = [INLINE_NBYTES]

    def run(self) -> None:
        """Go over the whole file."""
        model, walk = self.model, self.walk
        opsets: list[str] = []
        for f in walk.fields(0, None):
            if f.number in (1, 5) and f.wire == VARINT:
                model.facts.append(("ir_version" if f.number == 1 else "model_version", str(signed(f.value))))
            elif f.wire != BYTES:
                continue
            elif f.number in (2, 3, 4, 6):
                key = {2: "producer_name", 3: "producer_version", 4: "domain", 6: "doc_string"}[f.number]
                if f.nbytes:
                    model.facts.append((key, whole_text(walk.read(f, 1000))))
            elif f.number == 7:
                model.has_graph = True
                self.graph(f, "", 0)
            elif f.number == 8 and len(opsets) < _MOST_NAMED:
                opsets.append(self.opset(f))
                model.facts = [fact for fact in model.facts if fact[0] != "opset"]
                model.facts.append(("opset", ", ".join(opsets)))
            elif f.number == 14 and len(model.properties) < _MOST_NAMED:
                model.properties.append(read_pair(walk, f))
            elif f.number == 25:
                self.function(f)

    def opset(self, message: Field) -> str:
        domain, version = "ai.onnx", "?"
        for f in self.walk.fields(message.start, message.end):
            if f.number == 1 and f.wire == BYTES and f.nbytes:
                domain = whole_text(self.walk.read(f, 200))
            elif f.number == 2:
                version = str(signed(f.value))
        return f"{domain} {version}"

    def graph(self, message: Field, prefix: str, depth: int) -> None:
        """A graph and those inside its nodes. prefix: before the names of its initializers."""
        model = self.model
        if depth > _DEEPEST:
            self.limits.charge(_TENSOR_NBYTES, f"The graphs of {self.walk.cursor.source.name}")
            model.unusable.append(f"{prefix[:80]}: graphs are nested deeper than {_DEEPEST} levels")
            return
        model.subgraphs += depth > 0
        for f in self.walk.fields(message.start, message.end):
            if f.wire != BYTES:
                continue
            if f.number == 1:
                self.node(f, prefix, depth)
            elif f.number == 5:
                found = self.message(f)
                self.tensor(found, prefix + found.name, inside=bool(prefix))
            elif f.number == 15:
                self.sparse(f, prefix)
            elif depth == 0 and f.number in (11, 12):
                ports = model.inputs if f.number == 11 else model.outputs
                if len(ports) < _MOST_PORTS:
                    ports.append(self.port(f))
            elif depth == 0 and f.number == 2:
                model.facts.append(("graph_name", whole_text(self.walk.read(f, 200))))

    def message(self, f: Field) -> TensorMessage:
        """A TensorProto, and the file it names."""
        found = read_message(self.walk, f.start, f.end, self.limits.dimensions)
        if found.is_external and len(self.model.places) < _MOST_KINDS:
            self.model.places[found.external.get("location", "")] = None
        return found

    def node(self, message: Field, prefix: str, depth: int, *, in_function: bool = False) -> None:
        """in_function: what it is made of is looked at, and not counted among the model's own."""
        walk, model = self.walk, self.model
        name = operator = domain = output = ""
        attributes: list[Field] = []
        for f in walk.fields(message.start, message.end):
            if f.wire != BYTES:
                continue
            if f.number == 2 and not output:
                output = whole_text(walk.read(f, _NAME_NBYTES))
            elif f.number == 3:
                name = whole_text(walk.read(f, 200))
            elif f.number == 4:
                operator = whole_text(walk.read(f, 200))
            elif f.number == 7:
                domain = whole_text(walk.read(f, 200))
            elif f.number == 5:
                if len(attributes) >= _MOST_ATTRIBUTES:
                    raise BadWire(f"an operator before byte {f.start:,} has more than {_MOST_ATTRIBUTES:,} attributes")
                attributes.append(f)
        known = f"{domain}::{operator}" if domain not in ("", "ai.onnx") else operator
        if not in_function and (known in model.operators or len(model.operators) < _MOST_KINDS):
            model.operators[known] += 1
        if _PYTHON.search(operator) and len(model.runs_python) < _MOST_KINDS:
            model.runs_python[known] = None
        value = prefix + output if known == "Constant" and output and not in_function else ""
        for attribute in attributes:
            inside = f"{prefix}{name or operator}/"
            self.attribute(attribute, inside, depth, in_function=in_function, value=value)

    def attribute(self, message: Field, prefix: str, depth: int, *, in_function: bool, value: str = "") -> None:
        """The tensors and graphs of an AttributeProto. prefix: before the names of what is in its graphs.

        value: the name of a `Constant`, whose tensor is a weight where it looks like one.
        """
        model = self.model
        for f in self.walk.fields(message.start, message.end):
            if f.wire != BYTES:
                continue
            if f.number in (5, 10):
                inner = self.message(f)
                if value and f.number == 5 and is_weight(inner):
                    self.tensor(inner, value, inside=depth > 0)
                    continue
                model.constants += not in_function
                model.constant_nbytes += 0 if in_function else inner.nbytes
            elif value and f.number == 22:
                self.sparse(f, "", value)
            elif f.number in (22, 23):
                for part in self.walk.fields(f.start, f.end):
                    if part.number in (1, 2) and part.wire == BYTES:
                        self.message(part)
            elif f.number in (6, 11) and in_function:
                self.inner_graph(f, depth + 1)
            elif f.number in (6, 11):
                self.graph(f, prefix, depth + 1)

    def inner_graph(self, message: Field, depth: int) -> None:
        """A graph inside a function: only what it reaches for."""
        if depth > _DEEPEST:
            self.model.unusable.append(f"a function's graphs are nested deeper than {_DEEPEST} levels")
            return
        for f in self.walk.fields(message.start, message.end):
            if f.wire == BYTES and f.number == 1:
                self.node(f, "", depth, in_function=True)
            elif f.wire == BYTES and f.number == 5:
                self.message(f)

    def tensor(self, message: TensorMessage, name: str, *, inside: bool) -> None:
        """An initializer or a constant. inside: of a graph within the model's, where names may come again."""
        model = self.model
        if self.walk.cut and not (message.raw or message.typed or message.is_external):
            return  # The file ends inside it, before its data.
        self.limits.charge(_TENSOR_NBYTES + 2 * len(name), f"The list of tensors of {self.walk.cursor.source.name}")
        if name in model.names:
            if not inside:
                model.unusable.append(f"{name[:80]}: the name occurs twice")
                return
            name = f"{name} ({len(model.names)})"
        model.names.add(name)
        if message.code == STRING:
            says = f"{human_shape(tuple(message.dims))} text, {counted(message.strings, 'string')}"
            model.values.append((name, Value(kind=ValueKind.ARRAY, type_name="string tensor", says=says[:300])))
            return
        made = describe(message, name, self.walk, self.budget, self.limits.dimensions)
        if isinstance(made, str):
            model.unusable.append(f"{name[:80]}: {made}")
            return
        info, storage, outside = made
        model.tensors.append(info)
        if storage is not None:
            self.limits.charge(len(storage.inline or b""), f"The numbers in {self.walk.cursor.source.name}")
            model.storages[name] = storage
        if outside is not None:
            model.outside[name] = outside

    def sparse(self, message: Field, prefix: str, name: str = "") -> None:
        """A SparseTensorProto: described, since its two parts are tensors of another shape. name: else its values'."""
        self.limits.charge(_TENSOR_NBYTES, f"The list of tensors of {self.walk.cursor.source.name}")
        values = indices = TensorMessage()
        shape: list[int] = []
        most = self.limits.dimensions
        for f in self.walk.fields(message.start, message.end):
            if f.number == 1 and f.wire == BYTES:
                values = self.message(f)
            elif f.number == 2 and f.wire == BYTES:
                indices = self.message(f)
            elif f.number == 3:
                shape += read_dims(self.walk, f, most - len(shape))
        stored = values.dims[0] if values.dims else 0
        self.model.values.append(
            (
                name or prefix + values.name,
                Value(
                    kind=ValueKind.ARRAY,
                    type_name="sparse tensor",
                    says=f"{human_shape(tuple(shape))} {element_says(values.code)}, {stored:,} values stored, "
                    f"indices {human_shape(tuple(indices.dims))}"[:300],
                ),
            )
        )

    def port(self, message: Field) -> tuple[str, str]:
        """An input or output: its name, and its type with the shape, names for sizes that are free."""
        name, says = "", "no tensor"
        for f in self.walk.fields(message.start, message.end):
            if f.number == 1 and f.wire == BYTES:
                name = whole_text(self.walk.read(f, 200))
            elif f.number == 2 and f.wire == BYTES:
                for kind in self.walk.fields(f.start, f.end):
                    if kind.number == 1 and kind.wire == BYTES:
                        says = self.tensor_type(kind)
        return name, says

    def tensor_type(self, message: Field) -> str:
        code, known = 0, False
        sizes: list[str] = []
        for f in self.walk.fields(message.start, message.end):
            if f.number == 1 and f.wire == VARINT:
                code = f.value
            elif f.number == 2 and f.wire == BYTES:
                known = True
                for dim in self.walk.fields(f.start, f.end):
                    size = "?"
                    for d in self.walk.fields(dim.start, dim.end):
                        if d.number == 1 and d.wire == VARINT:
                            size = str(signed(d.value))
                        elif d.number == 2 and d.wire == BYTES:
                            size = whole_text(self.walk.read(d, 60))
                    if len(sizes) < self.limits.dimensions:
                        sizes.append(size)
        return f"{element_says(code)} [{', '.join(sizes)}]" if known else f"{element_says(code)}, any shape"

    def function(self, message: Field) -> None:
        self.model.function_count += 1
        for f in self.walk.fields(message.start, message.end):
            if f.wire != BYTES:
                continue
            if f.number == 1 and len(self.model.functions) < _MOST_NAMED:
                self.model.functions.append(whole_text(self.walk.read(f, _NAME_NBYTES))[:200])
            elif f.number == 7:
                self.node(f, "", 1, in_function=True)
            elif f.number == 11:
                self.attribute(f, "", 1, in_function=True)


def is_weight(message: TensorMessage) -> bool:
    """Whether a `Constant` may hold what was learned: real numbers along an axis, or bytes of a quantised matrix."""
    if message.code not in ELEMENTS:
        return False
    _, dtype, bits, _ = ELEMENTS[message.code]
    if dtype.startswith(("float", "bfloat", "complex")):
        return len(message.dims) >= 1
    return bits <= 8 and dtype != "bool" and len(message.dims) >= 2


def read_dims(walk: Walk, f: Field, most: int) -> list[int]:
    """Repeated int64, packed or one at a time."""
    values = unpack_varints(walk.read(f, 10 * max(0, most))) if f.wire == BYTES else [f.value]
    return [signed(v) for v in values][: max(0, most)]
