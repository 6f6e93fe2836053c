"""Which line of a person's source makes a module: often not the line that fails, and the one to change."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

from torch import nn

from inspector.doctor.frames import returning_line, source_line
from inspector.doctor.own_layers import file_of, is_own_class
from inspector.doctor.report import SourceLine
from inspector.errors import InspectorError
from inspector.side_files import read_text

_MOST_STEPS = 12
_LISTS = ("Sequential", "ModuleList")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@lru_cache(maxsize=16)
def parsed_source(file: str) -> tuple[ast.Module, tuple[str, ...]] | None:
    """(tree, lines) of a file; None where it is no Python that can be read."""
    try:
        text = read_text(file, "source")
        return ast.parse(text), tuple(text.splitlines())
    except (InspectorError, SyntaxError, ValueError, RecursionError):
        return None


def class_of(module: nn.Module) -> tuple[str, ast.ClassDef, ast.Module] | None:
    """(file, class, whole tree) of a module whose class a person wrote."""
    file = file_of(module)
    parsed = parsed_source(file) if file else None
    if parsed is None:
        return None
    named = [n for n in ast.walk(parsed[0]) if isinstance(n, ast.ClassDef) and n.name == type(module).__name__]
    return (file, named[0], parsed[0]) if named else None


def line_that_makes(model: nn.Module, path: str) -> SourceLine | None:
    """Where the module of that path is constructed, as near as its source tells; None where nobody's own class
    holds it."""
    parts = path.split(".") if path else []
    for end in range(len(parts) - 1, -1, -1):
        holder = model.get_submodule(".".join(parts[:end]))
        if not is_own_class(holder):
            continue
        found = class_of(holder)
        if found is None:
            return None
        file, written, tree = found
        for function in (n for n in ast.walk(written) if isinstance(n, Function)):
            for statement in (n for n in ast.walk(function) if isinstance(n, ast.Assign)):
                value = value_given(statement, parts[end])
                if value is not None:
                    # What torch itself put into a layer of a transformer was made by nobody's line.
                    for inner in range(len(parts), end, -1):
                        kind = type(model.get_submodule(".".join(parts[:inner]))).__name__
                        at = _Search(kind, tree).line(value, parts[end + 1 : inner], (function,))
                        if at is not None:
                            return source_line(file, at)
                    return source_line(file, statement.lineno)
        return None
    return None


def line_that_returns(module: nn.Module | None) -> SourceLine | None:
    """The last return of the forward of a person's own class."""
    return returning_line(type(module).forward) if module is not None and is_own_class(module) else None


def line_of_buffer(model: nn.Module, name: str) -> SourceLine | None:
    """Where a class registers that buffer or parameter, or sets it first."""
    path, _, own = name.rpartition(".")
    found = class_of(model.get_submodule(path))
    if found is None:
        return None
    lines = []
    for node in ast.walk(found[1]):
        registers = called_name(node) in ("register_buffer", "register_parameter")
        given = node.args[0] if isinstance(node, ast.Call) and registers and node.args else None
        if isinstance(given, ast.Constant) and given.value == own:
            return source_line(found[0], given.lineno)
        if isinstance(node, ast.Assign) and value_given(node, own) is not None:
            lines.append(node.lineno)
    return source_line(found[0], min(lines)) if lines else None


def with_argument(line: SourceLine | None, name: str, value: str) -> str:
    """The statement of that line with one more keyword for the first call of a layer in it; "" where it is no whole
    statement."""
    try:
        tree = ast.parse(line.text.rstrip(",") if line is not None else "")
    except (SyntaxError, ValueError):
        return ""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and called_name(n)[:1].isupper()]
    if not calls or any(one.arg == name for one in calls[0].keywords):
        return ""
    calls[0].keywords.append(ast.keyword(arg=name, value=ast.parse(value, mode="eval").body))
    return ast.unparse(tree)


def value_given(statement: ast.Assign, name: str) -> ast.expr | None:
    """What an assignment gives to self.NAME, of self.a, self.b = one, other its own part."""
    for target in statement.targets:
        if isinstance(target, ast.Attribute) and target.attr == name:
            return statement.value
        if isinstance(target, ast.Tuple):
            values = statement.value.elts if isinstance(statement.value, ast.Tuple) else ()
            for one, value in zip(target.elts, values, strict=False):
                if isinstance(one, ast.Attribute) and one.attr == name:
                    return value
    return None


def called_name(node: ast.AST) -> str:
    """The last name of what is called: "Linear" of nn.Linear(3, 4)."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


class _Search:
    """For a call of one class, from an expression over the names and functions that it mentions."""

    def __init__(self, kind: str, tree: ast.Module) -> None:
        self._kind, self._tree, self._left = kind, tree, _MOST_STEPS

    def line(self, value: ast.expr, parts: Sequence[str], scopes: tuple[Function, ...]) -> int | None:
        """parts: of the module's path below what the value makes. scopes: functions around it, innermost first."""
        self._left -= 1
        if self._left < 0:
            return None
        if isinstance(value, ast.Name):
            given = _assigned(value, scopes)
            return None if given is None else self.line(given, parts, scopes)
        if called_name(value) in _LISTS and parts and parts[0].isdecimal():
            entry = _entry(value, int(parts[0]))
            if entry is not None:
                return self.line(entry, parts[1:], scopes)
        if called_name(value) == self._kind:
            return value.lineno
        # A small function of theirs: what it returns.
        function = self._function(called_name(value), scopes)
        for returned in _returns(function) if function is not None else ():
            found = self.line(returned, parts, (function, *scopes) if function is not None else scopes)
            if found is not None:
                return found
        calls = [n for n in ast.walk(value) if isinstance(n, ast.Call) and called_name(n) == self._kind]
        if len(calls) == 1:
            return calls[0].lineno
        names = [n for n in ast.walk(value) if isinstance(n, ast.Name) and not calls]
        for name in names:
            found = self.line(name, (), scopes)
            if found is not None:
                return found
        return None

    def _function(self, name: str, scopes: Sequence[Function]) -> Function | None:
        inside = [n for scope in scopes for n in ast.walk(scope) if isinstance(n, Function) and n not in scopes]
        every = [*inside, *(n for n in self._tree.body if isinstance(n, Function))]
        return next((one for one in every if name and one.name == name), None)


def _entry(value: ast.AST, index: int) -> ast.expr | None:
    assert isinstance(value, ast.Call)
    given: Sequence[ast.expr] = value.args
    if len(given) == 1 and isinstance(given[0], ast.List | ast.Tuple):
        given = given[0].elts
    elif len(given) == 1 and isinstance(given[0], ast.ListComp | ast.GeneratorExp):
        return given[0].elt
    before = given[: index + 1]
    return before[index] if len(before) > index and not any(isinstance(one, ast.Starred) for one in before) else None


def _assigned(name: ast.Name, scopes: Sequence[Function]) -> ast.expr | None:
    """What a variable was given last before that line, in the innermost function that gives it anything."""
    for scope in scopes:
        given = [
            n.value
            for n in ast.walk(scope)
            if isinstance(n, ast.Assign)
            and n.lineno < name.lineno
            and any(isinstance(t, ast.Name) and t.id == name.id for t in n.targets)
        ]
        if given:
            return max(given, key=lambda one: one.lineno)
    return None


def _returns(function: Function) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
