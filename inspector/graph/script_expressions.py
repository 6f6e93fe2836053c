"""What an expression of TorchScript code stands for: attributes of the file's objects, and operators as nodes."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from inspector.graph.building import GraphBuilder
from inspector.graph.script_code import Code
from inspector.graph.script_constants import fold
from inspector.graph.script_values import (
    UNKNOWN,
    Data,
    Frame,
    Journal,
    Known,
    Module,
    Name,
    Value,
    Weight,
    makers,
)
from inspector.graph.types import Parameter
from inspector.readers.unpickle.stand_ins import Call, GlobalRef, TensorStub
from inspector.readers.unpickle.stand_ins import Mapping as StubMapping
from inspector.units import counted

_MOST_STEPS = 400_000
DEEPEST = 300
MOST_FLAT = 10_000
NAMESPACES = ("torch", "ops", "CONSTANTS", "__torch__")
_SILENT = ("RaiseException", "warn", "print")
# They change the list that they are given.
_LISTS = frozenset(
    {"append", "extend", "insert", "clear", "_set_item", "pop", "remove", "Delete", "setdefault", "update"}
)
_NUMBERS = frozenset({"bool", "int", "float", "str", "len", "dim", "size", "format", "range", "isinstance"})


class Enough(Exception):
    """The code is longer than is followed, or nested deeper."""


class Expressions(ABC):
    """What is known while one archive's code is followed, and the values of its expressions."""

    @abstractmethod
    def call(self, expression: ast.Call, frame: Frame) -> Value:
        """What a call gives."""

    def __init__(self, builder: GraphBuilder, code: Code) -> None:
        self.builder = builder
        self.code = code
        self.journal = Journal()
        self.steps = self.depth = self.inlined = self.decided = self.loops = 0
        self.times: dict[tuple[str, str], int] = {}
        self.attributes: dict[str, Value] = {}
        self.unknown: dict[str, int] = {}

    def report(self) -> None:
        """Say what was decided and what was not understood."""
        if self.decided:
            self.builder.remark(
                f"{counted(self.decided, 'branch', 'branches')} that the file's own settings decide are drawn as they "
                "decide."
            )
        if self.unknown:
            shown = ", ".join(f"{what} ({n}x)" for what, n in list(self.unknown.items())[:5])
            self.builder.remark(f"Some of the code was not understood, and is not drawn: {shown}.")

    def step(self, n: int = 1) -> None:
        self.steps += n
        if self.steps > _MOST_STEPS or self.builder.full:
            raise Enough

    def deeper(self) -> None:
        self.depth += 2
        if self.depth > DEEPEST:
            raise Enough

    def connect(self, values: Sequence[Value], node: str) -> list[Parameter]:
        made, weights = makers(values, MOST_FLAT)
        self.step(len(made))
        for source in made:
            self.builder.edge(source, node)
        return weights

    def value(self, expression: ast.expr, frame: Frame) -> Value:
        self.step()
        self.depth += 1
        if self.depth > DEEPEST:
            raise Enough
        found = self.look_up(expression, frame)
        self.depth -= 1
        return found

    def look_up(self, expression: ast.expr, frame: Frame) -> Value:
        if isinstance(expression, ast.Name):
            known = frame.names.get(expression.id)
            if known is not None:
                return known
            return Name(expression.id) if expression.id in NAMESPACES else Known()
        if isinstance(expression, ast.Constant):
            return Known(expression.value)
        if isinstance(expression, ast.Attribute):
            return self.attribute(self.value(expression.value, frame), expression.attr)
        if isinstance(expression, ast.Call):
            return self.call(expression, frame)
        if isinstance(expression, ast.Tuple | ast.List | ast.Set):
            parts = [self.value(part, frame) for part in expression.elts]
            return Data(None, parts, is_tuple=isinstance(expression, ast.Tuple))
        if isinstance(expression, ast.Dict):
            return Data(None, [self.value(part, frame) for part in expression.values])
        if isinstance(expression, ast.Subscript):
            index = self.value(expression.slice, frame)
            return self.operator("__getitem__", [self.value(expression.value, frame), index], {}, frame)
        if isinstance(expression, ast.UnaryOp):
            return self.operator(_WORDS[type(expression.op)], [self.value(expression.operand, frame)], {}, frame)
        if isinstance(expression, ast.BinOp):
            parts = [self.value(expression.left, frame), self.value(expression.right, frame)]
            return self.operator(_WORDS.get(type(expression.op), "arithmetic"), parts, {}, frame)
        if isinstance(expression, ast.BoolOp):
            word = _WORDS[type(expression.op)]
            return self.operator(word, [self.value(part, frame) for part in expression.values], {}, frame)
        if isinstance(expression, ast.Compare) and len(expression.ops) == 1:
            parts = [self.value(expression.left, frame), self.value(expression.comparators[0], frame)]
            return self.operator(_WORDS.get(type(expression.ops[0]), "comparison"), parts, {}, frame)
        if isinstance(expression, ast.IfExp):
            decision = self.value(expression.test, frame)
            if isinstance(decision, Known) and decision.value is not UNKNOWN:
                self.decided += 1
                return self.value(expression.body if decision.value else expression.orelse, frame)
            parts = [decision, self.value(expression.body, frame), self.value(expression.orelse, frame)]
            return self.operator("if", parts, {}, frame)
        self.not_understood(expression)
        return Known()

    def attribute(self, owner: Value, name: str) -> Value:
        if isinstance(owner, Name):
            dotted = f"{owner.dotted}.{name}"
            return Weight(Parameter(name=dotted)) if owner.dotted == "CONSTANTS" else Name(dotted)
        if isinstance(owner, Module):
            set_ = self.attributes.get(f"{id(owner.stub)} {name}")
            if set_ is not None:
                return set_
            kind = self.code.find_class(owner.kind)
            if kind is not None and name in kind.constants:
                return Known(kind.constants[name])
            return self.of_file(owner, name)
        if isinstance(owner, Data) and owner.made is not None:
            return Data(owner.made)
        return Known()

    def of_file(self, owner: Module, name: str) -> Value:
        """An attribute as the file's objects have it."""
        states = owner.stub.states
        state = states[-1] if states else None
        pairs = state.pairs if isinstance(state, StubMapping) else []
        self.step(len(pairs))
        path = f"{owner.path}.{name}" if owner.path else name
        for key, value in reversed(pairs):
            if type(key) is str and key == name:
                return self.stub(value, path, pairs, 0)
        return Known()

    def stub(self, value: object, path: str, beside: Sequence[tuple[object, object]], level: int) -> Value:
        if isinstance(value, TensorStub):
            own = next((key for key, other in beside if other is value and type(key) is str), None)
            path = f"{path.rpartition('.')[0]}.{own}".lstrip(".") if level and own is not None else path
            return Weight(Parameter(name=path, shape=value.shape))
        if isinstance(value, Call) and isinstance(value.callee, GlobalRef):
            if self.code.find_class(value.callee.full) is not None:
                return Module(path, value, value.callee.full)
            return Weight(Parameter(name=path))
        if isinstance(value, list | tuple) and level < 4 and len(value) <= 1_000:
            self.step(len(value) * (1 + len(beside)))
            parts = [self.stub(entry, path, beside, level + 1) for entry in value]
            return Data(None, parts, is_tuple=isinstance(value, tuple))
        return Known(value) if value is None or isinstance(value, bool | int | float | str) else Known()

    def operator(self, label: str, given: Sequence[Value], named: Mapping[str, Value], frame: Frame) -> Value:
        """What an operator gives: a constant where all it takes is known, else a node."""
        if label in _SILENT:
            return Known(None)
        values = [*given, *named.values()]
        known = fold(label, given, in_loop=self.loops > 0) if not named else None
        if known is not None:
            return known
        made, weights = makers(values, MOST_FLAT)
        if not made and not weights and (label in _NUMBERS or label in _WORDS.values()):
            return Known()
        settings = [
            (str(key), repr(value.value)[:100])
            for key, value in (*enumerate(given), *named.items())
            if isinstance(value, Known)
        ]
        node = self.builder.node(label, group=frame.group, attributes=settings, parameters=weights)
        if not node:
            raise Enough
        self.connect(values, node)
        first = given[0] if given else None
        if isinstance(first, Data) and (label in _LISTS or (label.endswith("_") and not label.endswith("__"))):
            self.journal.change(first, node)
            return first if label not in ("pop", "setdefault") else Data(node)
        return Data(node)

    def not_understood(self, what: ast.AST | str) -> None:
        text = what if isinstance(what, str) else type(what).__name__
        if text in self.unknown or len(self.unknown) < 50:
            self.unknown[text] = self.unknown.get(text, 0) + 1


_WORDS: dict[type[ast.AST], str] = {
    ast.Not: "__not__",
    ast.USub: "neg",
    ast.UAdd: "pos",
    ast.Invert: "bitwise_not",
    ast.And: "__and__",
    ast.Or: "__or__",
    ast.Is: "__is__",
    ast.IsNot: "__isnot__",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.In: "__contains__",
    ast.NotIn: "not in",
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "remainder",
    ast.Pow: "pow",
}
