"""Following TorchScript code: statements, branches and loops, and calls of methods and functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from inspector.graph.script_expressions import DEEPEST, MOST_FLAT, NAMESPACES, Enough, Expressions
from inspector.graph.script_values import (
    UNKNOWN,
    Changes,
    Data,
    Frame,
    Known,
    Module,
    Name,
    Value,
    is_same,
    makers,
)
from inspector.graph.types import NodeKind

_MOST_CALLS = 20_000
_SAME = ("annotate", "unchecked_cast")


class Following(Expressions):
    """One archive's code, followed from its forward."""

    def start(self, function: ast.FunctionDef, given: Sequence[Value], module: Module) -> Value | None:
        """What the outermost call gives; None where the code could not be followed to its end."""
        try:
            return self.inline(function, given, {}, "", module)
        except (Enough, RecursionError):
            self.builder.remark("The code is longer or nested deeper than is followed here; the rest is not drawn.")
            return None

    def inline(
        self,
        function: ast.FunctionDef,
        given: Sequence[Value],
        named: Mapping[str, Value],
        group: str,
        module: Module | None,
    ) -> Value:
        """Follow a function with these arguments; what it returns."""
        self.inlined += 1
        self.depth += 4
        if self.inlined > _MOST_CALLS or self.depth > DEEPEST:
            raise Enough
        frame = Frame({}, group, module)
        arguments = function.args.args
        for argument, value in zip(arguments, given, strict=False):
            frame.names[argument.arg] = value
        defaults = function.args.defaults
        for argument, default in zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True):
            if argument.arg not in frame.names:
                frame.names[argument.arg] = self.value(default, frame)
        frame.names.update(named)
        self.block(function.body, frame)
        self.depth -= 4
        return frame.result if frame.result is not None else Known(None)

    def block(self, statements: Sequence[ast.stmt], frame: Frame) -> None:
        for statement in statements:
            if frame.result is not None:
                return
            self.statement(statement, frame)

    def statement(self, statement: ast.stmt, frame: Frame) -> None:
        self.step()
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            self.assign(statement.targets[0], self.value(statement.value, frame), frame)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self.assign(statement.target, self.value(statement.value, frame), frame)
        elif isinstance(statement, ast.Expr):
            self.value(statement.value, frame)
        elif isinstance(statement, ast.Return):
            value = self.value(statement.value, frame) if statement.value is not None else Known(None)
            frame.result = value
        elif isinstance(statement, ast.If):
            self.branch(statement, frame)
        elif isinstance(statement, ast.While | ast.For):
            self.loop(statement, frame)
        elif isinstance(statement, ast.With):
            self.block(statement.body, frame)
        elif not isinstance(statement, ast.Pass | ast.Assert | ast.Raise | ast.AnnAssign):
            self.not_understood(statement)

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        if isinstance(target, ast.Name):
            self.journal.name(frame.names, target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            items = value.items if isinstance(value, Data) else None
            for number, part in enumerate(target.elts):
                if items is not None and len(items) == len(target.elts):
                    self.assign(part, items[number], frame)
                else:
                    made = value.made if isinstance(value, Data) else None
                    self.assign(part, Data(made) if made is not None else value, frame)
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value, frame)
            if isinstance(owner, Module):
                if self.journal.is_open:
                    self.not_understood("attribute set in a branch")
                self.journal.name(self.attributes, f"{id(owner.stub)} {target.attr}", value)
        elif isinstance(target, ast.Subscript):
            self.operator("_set_item", [self.value(target.value, frame), value], {}, frame)
        else:
            self.not_understood(target)

    def branch(self, statement: ast.If, frame: Frame) -> None:
        decision = self.value(statement.test, frame)
        raises = _raises(statement.body), _raises(statement.orelse)
        if isinstance(decision, Known) and decision.value is not UNKNOWN:
            self.decided += 1
            self.block(statement.body if decision.value else statement.orelse, frame)
            return
        if any(raises):
            # A check: what goes on is the other branch.
            self.block(statement.orelse if raises[0] else statement.body, frame)
            return
        self.deeper()
        outer = frame.group
        group = self.builder.new_group(outer, "if", "if")
        left = []
        for name, body in (("then", statement.body), ("else", statement.orelse)):
            frame.group = self.builder.new_group(group, name)
            left.append(self.apart(body, frame))
        frame.group = outer
        self.depth -= 2
        one, other = left
        node = self.join("if", group, [decision])
        for name in dict.fromkeys((*one.names, *other.names)):
            before = frame.names.get(name)
            values = one.names.get(name, before), other.names.get(name, before)
            self.merge(name, values, node, frame)
        for data in dict.fromkeys((*one.data, *other.data)):
            for changes in left:
                made, items = changes.data.get(data, (data.made, data.items))
                self.connect([Data(made, items)], node)
            self.journal.change(data, node)

    def loop(self, statement: ast.While | ast.For, frame: Frame) -> None:
        self.deeper()
        outer = frame.group
        word = "while" if isinstance(statement, ast.While) else "for"
        given = [self.value(statement.test if isinstance(statement, ast.While) else statement.iter, frame)]
        group = self.builder.new_group(outer, word, word)
        frame.group = group
        before = dict(frame.names)
        self.step(len(before))
        mark = self.journal.begin()
        try:
            if isinstance(statement, ast.For):
                name = statement.target.id if isinstance(statement.target, ast.Name) else "turn"
                turn = self.builder.node(name, name=f"{word} {name}", kind=NodeKind.INPUT, group=group)
                self.journal.name(frame.names, name, Data(turn))
            for name in set(_assigned(statement.body)):
                self.step()
                if isinstance(frame.names.get(name), Known):
                    # It has this value in the first turn alone.
                    self.journal.name(frame.names, name, Known())
            self.loops += 1
            self.block(statement.body, frame)
        finally:
            changes = self.journal.take_back(mark, frame)
        self.loops -= 1
        frame.group = outer
        self.depth -= 2
        node = self.join(word, group, given)
        for name, value in changes.names.items():
            if name in before:
                self.merge(name, (before[name], value), node, frame)
        for data, (made, items) in changes.data.items():
            self.connect([Data(data.made, data.items), Data(made, items)], node)
            self.journal.change(data, node)

    def apart(self, statements: Sequence[ast.stmt], frame: Frame) -> Changes:
        """Follow a branch; what it left behind. The frame is as it was before."""
        mark = self.journal.begin()
        try:
            self.block(statements, frame)
        finally:
            changes = self.journal.take_back(mark, frame)
        if frame.result is not None:
            frame.result = None
            self.unknown["return inside a branch"] = self.unknown.get("return inside a branch", 0) + 1
        return changes

    def join(self, label: str, group: str, given: Sequence[Value]) -> str:
        node = self.builder.node(label, group=group)
        self.connect(given, node)
        return node

    def merge(self, name: str, values: tuple[Value | None, Value | None], node: str, frame: Frame) -> None:
        """A name after a branch or a loop: the same value, or what the operator of the branch hands out."""
        one, other = values
        if one is None or other is None:
            return  # Of one branch alone: nobody reads it afterwards.
        if is_same(one, other):
            self.journal.name(frame.names, name, one)
            return
        parts = _parts(one), _parts(other)
        if parts[0] and parts[0] == parts[1]:
            self.connect([one, other], node)
            self.journal.name(frame.names, name, Data(None, [Data(node) for _ in range(parts[0])], is_tuple=True))
            return
        self.connect([one, other], node)
        made, weights = makers([one, other], MOST_FLAT)
        known = not made and not weights and not (isinstance(one, Data) or isinstance(other, Data))
        self.journal.name(frame.names, name, Known() if known and not self.feeds(node) else Data(node))

    def feeds(self, node: str) -> bool:
        """Whether anything leads into a node: what was chosen between two numbers still hangs on the choice."""
        return self.builder.is_fed(node)

    def call(self, expression: ast.Call, frame: Frame) -> Value:
        function = expression.func
        word = function.id if isinstance(function, ast.Name) and function.id not in frame.names else ""
        if word in _SAME and len(expression.args) > 1:
            return self.value(expression.args[1], frame)
        if word == "uninitialized":
            return Known()
        given = [self.value(argument, frame) for argument in expression.args]
        named = {k.arg: self.value(k.value, frame) for k in expression.keywords if k.arg is not None}
        if word == "getattr" and len(given) > 1 and isinstance(given[1], Known):
            return self.attribute(given[0], str(given[1].value)[:200])
        if word and word not in NAMESPACES:
            return self.operator(word, given, named, frame)
        if isinstance(function, ast.Attribute):
            owner = self.value(function.value, frame)
            if isinstance(owner, Module):
                return self.method(owner, function.attr, given, named, frame)
            if not isinstance(owner, Name):
                return self.operator(function.attr, [owner, *given], named, frame)
            return self.dotted(f"{owner.dotted}.{function.attr}", given, named, frame)
        called = self.value(function, frame)
        if isinstance(called, Name):
            return self.dotted(called.dotted, given, named, frame)
        return self.operator("call", [called, *given], named, frame)

    def method(
        self, owner: Module, name: str, given: Sequence[Value], named: Mapping[str, Value], frame: Frame
    ) -> Value:
        kind = self.code.find_class(owner.kind)
        function = kind.methods.get(name) if kind is not None else None
        if function is None:
            self.not_understood(f"{owner.kind.rpartition('.')[2][:60]}.{name[:60]}")
            return self.operator(name, given, named, frame)
        group = frame.group
        if frame.module is None or owner.stub is not frame.module.stub:
            group = self.group_of(owner, name, frame)
        return self.inline(function, [owner, *given], named, group, owner)

    def group_of(self, owner: Module, name: str, frame: Frame) -> str:
        """The group of a call: one for each time that a module's forward is called from one place."""
        above = frame.module.path if frame.module is not None else ""
        inside = not above or owner.path.startswith(f"{above}.")
        rest = owner.path[len(above) + 1 if above else 0 :] if inside else owner.path
        path = f"{frame.group}.{rest}" if frame.group and inside else rest
        if name.startswith("forward"):
            times = self.times[frame.group, owner.path] = self.times.get((frame.group, owner.path), 0) + 1
            path += f" ({times})" if times > 1 else ""
        return self.builder.group(path, owner.kind.rpartition(".")[2])

    def dotted(self, name: str, given: Sequence[Value], named: Mapping[str, Value], frame: Frame) -> Value:
        """A function of the code, one of its classes, or an operator."""
        if name.startswith("__torch__."):
            function = self.code.find_function(name)
            if function is not None:
                return self.inline(function, given, named, frame.group, None)
            if self.code.find_class(name) is not None:
                return Data(None, [*given, *named.values()], is_tuple=True)
            return self.operator(name.rpartition(".")[2], given, named, frame)
        parts = name.split(".")
        if parts[0] == "ops" and len(parts) > 2 and parts[1] not in ("aten", "prim"):
            return self.operator(f"{parts[1]}::{parts[2]}", given, named, frame)
        return self.operator(parts[-1], given, named, frame)


def _parts(value: Value) -> int:
    """How many members a tuple has, 0 for what is none."""
    return len(value.items) if isinstance(value, Data) and value.is_tuple and value.items is not None else 0


def _assigned(statements: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that statements give a value to, in whatever branch."""
    todo: list[ast.AST] = list(statements)
    while todo:
        part = todo.pop()
        if isinstance(part, ast.Assign | ast.AnnAssign):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            todo += targets
        elif isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Tuple | ast.List):
            todo += part.elts
        elif isinstance(part, ast.If | ast.For | ast.While):
            todo += [*part.body, *part.orelse]


def _raises(body: Sequence[ast.stmt]) -> bool:
    """Whether a branch ends in an error."""
    for statement in body:
        if isinstance(statement, ast.Raise):
            return True
        value = statement.value if isinstance(statement, ast.Expr) else None
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr == "RaiseException"
        ):
            return True
    return False
