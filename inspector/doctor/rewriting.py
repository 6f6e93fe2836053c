"""Would it run with this line written otherwise? The forward's own code, compiled with one statement changed.

Nothing of the person's file is run for it but the function that ran before: its code is put in place of the old one
for one trial, and given back. What is put in is a fix that is about to be told, or a small change of the statement.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from torch import nn

from inspector.doctor.frames import OwnFrame, tree_of

#: The statement that stands there -> those to stand in its place.
Change = Callable[[ast.stmt], Sequence[ast.stmt]]


class _Imports(ast.NodeTransformer):
    """torch and F are not known by name in every file."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == "torch" and isinstance(node.ctx, ast.Load):
            return ast.parse("__import__('torch')", mode="eval").body
        return node


def statements_of(code: str) -> list[ast.stmt] | None:
    """Lines of a fix as statements; None where they are no Python."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return [_Imports().visit(one) for one in tree.body]


@contextmanager
def rewritten(frame: OwnFrame, change: Change, *, at: ast.stmt | None = None) -> Iterator[bool]:
    """For a trial inside: the function of this frame with a statement of it changed. at: another than the failing one.

    Gives False, with nothing changed, where its source or the function is not found.
    """
    function, code = _function(frame), _code(frame, change, at or frame.statement)
    if function is None or code is None or len(code.co_freevars) != len(function.__code__.co_freevars):
        yield False
        return
    kept = function.__code__
    function.__code__ = code
    try:
        yield True
    finally:
        function.__code__ = kept


def _function(frame: OwnFrame) -> FunctionType | None:
    """What runs the code of this frame: a method of what is called self, or a function of its file."""
    holder = frame.variables.get("self")
    found: list[Any] = [frame.globals.get(frame.function)]
    if isinstance(holder, nn.Module):
        found.append(inspect.getattr_static(type(holder), frame.function, None))
        found += [value for value in vars(holder).values() if isinstance(value, FunctionType)]
    return next((one for one in found if isinstance(one, FunctionType) and one.__code__ is frame.code), None)


def _code(frame: OwnFrame, change: Change, statement: ast.stmt | None) -> CodeType | None:
    tree = tree_of(frame.filename, frame.globals)
    if tree is None or statement is None:
        return None
    # The file may be another by now than the one that ran.
    same = _compiled(tree, frame)
    if same is None or same.co_code != frame.code.co_code:
        return None
    tree = copy.deepcopy(tree)
    place = (statement.lineno, statement.col_offset, type(statement))
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not isinstance(block, list):
                continue
            for i, one in enumerate(block):
                if isinstance(one, ast.stmt) and (one.lineno, one.col_offset, type(one)) == place:
                    made = [ast.copy_location(new, one) for new in change(one)]
                    for new in made:
                        ast.fix_missing_locations(new)
                    block[i : i + 1] = made
                    return _compiled(tree, frame)
    return None


def _compiled(tree: ast.Module, frame: OwnFrame) -> CodeType | None:
    try:
        whole = compile(tree, frame.filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None
    waiting = [whole]
    while waiting:
        code = waiting.pop()
        if code.co_qualname == frame.code.co_qualname and code.co_firstlineno == frame.code.co_firstlineno:
            return code
        waiting += [one for one in code.co_consts if isinstance(one, CodeType)]
    return None
