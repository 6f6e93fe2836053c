"""An ONNX graph's nodes, names and shapes as plain records. Data of tensors are jumped over.

Source: onnx/onnx.proto (GraphProto, NodeProto, AttributeProto, ValueInfoProto, FunctionProto).
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from inspector.graph.types import Size
from inspector.limits import Limits
from inspector.readers.cursor import Ended
from inspector.readers.flat import whole_text
from inspector.readers.formats.onnx.graph import read_dims
from inspector.readers.formats.onnx.protobuf import (
    BYTES,
    FIXED32,
    VARINT,
    BadWire,
    Field,
    Walk,
    signed,
    unpack_varints,
)
from inspector.readers.formats.onnx.tensor import element_says
from inspector.units import human_shape

DEEPEST = 24
_NAME_NBYTES = 4096
_TEXT_NBYTES = 100
_META_NBYTES = 8192
_LISTED = 16
_OP_NBYTES, _NAME_COST = 900, 150
_QUOTED = re.compile(r"'([^'\\]*)'|\"([^\"\\]*)\"")


@dataclass(frozen=True, slots=True)
class Meta:
    """What is told of a value: None for an unknown shape."""

    shape: tuple[Size, ...] | None = None
    dtype: str = ""


UNKNOWN = Meta()


@dataclass(slots=True, kw_only=True)
class Op:
    """A node. scopes, classes: the module paths and classes that torch's exporter notes beside it, outermost first."""

    name: str = ""
    operator: str = ""
    domain: str = ""
    overload: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    settings: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[tuple[str, Body]] = field(default_factory=list)
    scopes: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """What a function is called by."""
        return "" if self.domain == "ai.onnx" else self.domain, self.operator, self.overload


@dataclass(slots=True, kw_only=True)
class Body:
    """A graph or a function. weights: initializers with their shapes. values: what is told of names."""

    name: str = ""
    key: tuple[str, str, str] = ("", "", "")
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    weights: dict[str, tuple[Size, ...]] = field(default_factory=dict)
    values: dict[str, Meta] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Model:
    """graph: None where there is none. problem: why it could not be followed to its end."""

    graph: Body | None = None
    functions: dict[tuple[str, str, str], Body] = field(default_factory=dict)
    problem: str = ""
    too_deep: bool = False


class MessageReader:
    """Reads a whole model; what is behind a place that is no protocol buffer is left out, and `problem` says so."""

    def __init__(self, walk: Walk, limits: Limits) -> None:
        self.walk = walk
        self.limits = limits
        self.model = Model()

    def read(self) -> Model:
        """Raises LimitExceeded."""
        model = self.model
        try:
            for f in self.walk.fields(0, None):
                if f.number == 7 and f.wire == BYTES:
                    model.graph = Body()
                    self.graph(f, model.graph, 0)
                elif f.number == 25 and f.wire == BYTES:
                    self.function(f)
        except (BadWire, Ended) as error:
            model.problem = str(error).rstrip(".")
        if self.walk.cut and not model.problem:
            model.problem = "the file ends inside it"
        return model

    def graph(self, message: Field, body: Body, depth: int) -> None:
        """Fills a body, so that what was read before a problem stays."""
        for f in self.walk.fields(message.start, message.end):
            if f.wire != BYTES:
                continue
            if f.number == 1:
                body.ops.append(self.op(f, depth))
            elif f.number == 2:
                body.name = self.text(f)
            elif f.number in (5, 15):
                name, shape = self.weight(f, sparse=f.number == 15)
                self.charge(2 * _NAME_COST + len(name))
                body.weights[name] = shape
            elif f.number in (11, 12, 13):
                name, meta = self.value(f)
                if f.number != 13:
                    (body.inputs if f.number == 11 else body.outputs).append(name)
                body.values[name] = meta

    def function(self, message: Field) -> None:
        body, domain, name, overload = Body(), "", "", ""
        for f in self.walk.fields(message.start, message.end):
            if f.wire != BYTES:
                continue
            if f.number == 1:
                name = self.text(f)
            elif f.number == 10:
                domain = self.text(f)
            elif f.number == 13:
                overload = self.text(f)
            elif f.number in (4, 5):
                (body.inputs if f.number == 4 else body.outputs).append(self.text(f))
            elif f.number == 7:
                body.ops.append(self.op(f, 1))
            elif f.number == 12:
                key, meta = self.value(f)
                body.values[key] = meta
        body.name = name
        body.key = ("" if domain == "ai.onnx" else domain, name, overload)
        self.model.functions.setdefault(body.key, body)

    def op(self, message: Field, depth: int) -> Op:
        op = Op()
        self.charge(_OP_NBYTES)
        for f in self.walk.fields(message.start, message.end):
            if f.wire != BYTES:
                continue
            if f.number in (1, 2):
                name = self.text(f)
                self.charge(_NAME_COST + len(name))
                (op.inputs if f.number == 1 else op.outputs).append(name)
            elif f.number == 3:
                op.name = self.text(f)
            elif f.number == 4:
                op.operator = self.text(f)[:200]
            elif f.number == 7:
                op.domain = self.text(f)[:200]
            elif f.number == 8:
                op.overload = self.text(f)[:200]
            elif f.number == 5:
                self.attribute(f, op, depth)
            elif f.number == 9:
                self.note(f, op)
        return op

    def attribute(self, message: Field, op: Op, depth: int) -> None:
        name = ""
        texts: list[str] = []
        more = 0
        bodies: list[Body] = []
        for f in self.walk.fields(message.start, message.end):
            if f.number == 1 and f.wire == BYTES:
                name = self.text(f)[:200]
            elif f.number == 21 and f.wire == BYTES:
                texts.append(f"@{self.text(f)[:60]}")
            elif f.number in (6, 11) and f.wire == BYTES:
                if depth >= DEEPEST:
                    self.model.too_deep = True
                    continue
                bodies.append(Body())
                self.graph(f, bodies[-1], depth + 1)
            elif f.number in (2, 3, 4, 5, 7, 8, 9, 10, 22):
                if len(texts) >= _LISTED:
                    more += 1
                else:
                    texts += self.setting(f)
        op.bodies += [(name or "body", body) for body in bodies]
        if texts:
            shown = ", ".join(texts[:_LISTED]) + (", …" if more or len(texts) > _LISTED else "")
            self.charge(_NAME_COST + len(shown))
            op.settings.append((name, shown[:200]))

    def setting(self, f: Field) -> list[str]:
        """The values of one field of an attribute as text, a few of many."""
        if f.number in (3, 8) and f.wire == VARINT:
            return [str(signed(f.value))]
        if f.number in (2, 7) and f.wire == FIXED32:
            raw = self.walk.read(f, 4)
            return [f"{struct.unpack('<f', raw)[0]:g}"] if len(raw) == 4 else []
        if f.wire != BYTES:
            return []
        if f.number in (4, 9):
            return [whole_text(self.walk.read(f, _TEXT_NBYTES))]
        if f.number == 7:
            raw = self.walk.read(f, 4 * (_LISTED + 1))
            return [f"{number:g}" for (number,) in struct.iter_unpack("<f", raw[: len(raw) // 4 * 4])]
        if f.number == 8:
            raw = self.walk.read(f, 10 * (_LISTED + 1))
            while raw and raw[-1] >= 0x80:  # The last one may be cut.
                raw = raw[:-1]
            return [str(signed(number)) for number in unpack_varints(raw)]
        if f.number in (5, 10):
            dims: list[int] = []
            code = 0
            for part in self.walk.fields(f.start, f.end):
                if part.number == 1:
                    dims += read_dims(self.walk, part, self.limits.dimensions - len(dims))
                elif part.number == 2 and part.wire == VARINT:
                    code = part.value
            return [f"{human_shape(tuple(dims))} {element_says(code)}"]
        return []

    def note(self, message: Field, op: Op) -> None:
        """A pair of metadata_props: of torch's exporter the module's path and class."""
        key = value = ""
        for f in self.walk.fields(message.start, message.end):
            if f.wire != BYTES:
                continue
            if f.number == 1:
                key = whole_text(self.walk.read(f, 200))
            elif f.number == 2 and key in ("pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy"):
                value = whole_text(self.walk.read(f, _META_NBYTES))
        if value:
            names = tuple(a or b for a, b in _QUOTED.findall(value))
            self.charge(_NAME_COST + len(value))
            if key == "pkg.torch.onnx.name_scopes":
                op.scopes = names
            else:
                op.classes = names

    def value(self, message: Field) -> tuple[str, Meta]:
        name, meta = "", Meta()
        for f in self.walk.fields(message.start, message.end):
            if f.number == 1 and f.wire == BYTES:
                name = self.text(f)
            elif f.number == 2 and f.wire == BYTES:
                for kind in self.walk.fields(f.start, f.end):
                    if kind.number in (1, 8) and kind.wire == BYTES:
                        meta = self.tensor_type(kind)
        self.charge(2 * _NAME_COST + len(name))
        return name, meta

    def tensor_type(self, message: Field) -> Meta:
        dtype = ""
        shape: list[Size] | None = None
        for f in self.walk.fields(message.start, message.end):
            if f.number == 1 and f.wire == VARINT:
                dtype = element_says(f.value)
            elif f.number == 2 and f.wire == BYTES:
                shape = []
                for dim in self.walk.fields(f.start, f.end):
                    size: Size = None
                    if dim.wire != BYTES:
                        continue
                    for d in self.walk.fields(dim.start, dim.end):
                        if d.number == 1 and d.wire == VARINT:
                            size = signed(d.value)
                        elif d.number == 2 and d.wire == BYTES:
                            size = whole_text(self.walk.read(d, 60)) or None
                    if len(shape) < self.limits.dimensions:
                        shape.append(size)
        return Meta(None if shape is None else tuple(shape), dtype)

    def weight(self, message: Field, *, sparse: bool) -> tuple[str, tuple[Size, ...]]:
        """Name and shape of an initializer; a sparse one has its name in its values."""
        name = ""
        dims: list[Size] = []
        for f in self.walk.fields(message.start, message.end):
            if sparse and f.number == 1 and f.wire == BYTES:
                name = self.weight(f, sparse=False)[0]
            elif f.number == (3 if sparse else 1):
                dims += read_dims(self.walk, f, self.limits.dimensions - len(dims))
            elif not sparse and f.number == 8 and f.wire == BYTES:
                name = self.text(f)
        return name, tuple(dims)

    def text(self, f: Field) -> str:
        return whole_text(self.walk.read(f, _NAME_NBYTES))

    def charge(self, nbytes: int) -> None:
        self.limits.charge(nbytes, f"The graph of {self.walk.cursor.source.name}")
