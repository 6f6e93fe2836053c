"""Which lines of a traceback are the person's own, and what stood in their variables."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

import torch
from torch import nn

from inspector.doctor.report import SourceLine
from inspector.forward.watch import watch

# With the separator: torchvision is none of torch.
_TORCH = str(Path(torch.__file__).parent) + os.sep
_OURS = str(Path(__file__).resolve().parents[1]) + os.sep
_PYTHON = sysconfig.get_paths()["stdlib"]
_PACKAGES = re.compile(r".*(?:site-packages|dist-packages)[/\\]")
_PATH = re.compile(r"(?<![:/\w])(?:[A-Za-z]:)?[\\/](?:[^\s:'\"<>|]+[\\/])+([^\s:'\"<>|\\/]+)")
_MOST_TEXT = 400


@dataclass(frozen=True, slots=True, eq=False)
class OwnFrame:
    """A frame of the model's code. statement: parsed, None where there is no source. installed: a package's.
    function_node: the parsed function around it. code, filename, globals: what runs, and of which file."""

    where: SourceLine
    function: str
    variables: Mapping[str, Any]
    statement: ast.stmt | None
    code: CodeType
    filename: str
    globals: Mapping[str, Any]
    installed: bool = False
    function_node: ast.AST | None = None


def is_own(filename: str) -> bool:
    """Neither torch's, nor this package's, nor Python's own."""
    if filename.startswith(("<frozen", _TORCH, _OURS)):
        return False
    return not filename.startswith(_PYTHON) or bool(_PACKAGES.match(filename))


def own_frames(trace: TracebackType | None) -> list[OwnFrame]:
    """Outermost first."""
    found = []
    while trace is not None:
        if is_own(trace.tb_frame.f_code.co_filename):
            found.append((trace.tb_frame, trace.tb_lineno, trace.tb_lasti))
        trace = trace.tb_next
    # Of endless recursion the end is enough.
    return [_own(frame, line, at) for frame, line, at in found[-20:]]


def is_installed(filename: str) -> bool:
    """Whether a file belongs to a package, and not to the person."""
    return bool(_PACKAGES.match(filename))


def nearest_line(frames: Sequence[OwnFrame]) -> SourceLine | None:
    """The person's own line nearest to the failure, else a package's. frames: outermost first."""
    persons = [frame for frame in frames if not frame.installed]
    return (persons or frames)[-1].where if frames else None


def own_line() -> SourceLine | None:
    """The line of the model's code that is running now, the person's own before a package's; None where none is."""
    found = _running()
    return None if found is None else _line_of(found)


def own_frame() -> OwnFrame | None:
    """The same with its variables and its statement."""
    found = _running()
    return None if found is None else _own(found, found.f_lineno, found.f_lasti)


def _running() -> FrameType | None:
    frame: FrameType | None = sys._getframe()
    found: FrameType | None = None
    # Above `watch` stands whoever asked for the pass.
    while frame is not None and frame.f_code is not watch.__code__:
        if is_own(frame.f_code.co_filename):
            found = found or frame
            if not is_installed(frame.f_code.co_filename):
                found = frame
                break
        frame = frame.f_back
    return found


def line_of_with(frame: FrameType, names: Sequence[str]) -> SourceLine | None:
    """The innermost `with` around a frame's line that calls one of these; None where none does."""
    tree = _tree(frame)
    found = [
        node.lineno
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.With)
        and node.lineno <= frame.f_lineno <= (node.end_lineno or node.lineno)
        and any(name in ast.unparse(item.context_expr) for item in node.items for name in names)
    ]
    return _line_of(frame, max(found)) if found else None


def source_line(filename: str, number: int) -> SourceLine:
    """A line of a file by its number."""
    text = linecache.getline(filename, number).strip()
    return SourceLine(file=shown_file(filename), line=number, text=without_folders(text)[:_MOST_TEXT])


def called_by_person() -> bool:
    """Whether the function of torch that is about to run was called by the person's own code, and not by a layer."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    name = "" if frame is None else frame.f_code.co_filename
    return bool(name) and is_own(name) and not is_installed(name)


def forward_code(module: nn.Module) -> CodeType | None:
    """Of its class's forward; None where that is no plain Python function (TorchScript)."""
    return getattr(inspect.getattr_static(type(module), "forward", None), "__code__", None)


def returning_line(function: Any) -> SourceLine | None:
    """The last return of a plain Python function; None where there is no source."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    lines = linecache.getlines(code.co_filename, getattr(function, "__globals__", None))
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return None
    own = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and _begins(n) == code.co_firstlineno]
    returns = [n.lineno for found in own for n in ast.walk(found) if isinstance(n, ast.Return)]
    if not returns:
        return None
    at = max(returns)
    return SourceLine(
        file=shown_file(code.co_filename), line=at, text=without_folders(lines[at - 1].strip())[:_MOST_TEXT]
    )


def _begins(node: ast.FunctionDef) -> int:
    """A function's code begins with its decorators."""
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def shown_file(filename: str) -> str:
    """Its name alone; of an installed package from the package on."""
    inside = _PACKAGES.sub("", filename)
    return inside if inside != filename else Path(filename).name


def without_folders(text: str) -> str:
    """A message with the folders of this machine taken out."""
    return _PATH.sub(r"\1", text)


def _line_of(frame: FrameType, line: int = 0) -> SourceLine:
    number = line or frame.f_lineno
    name = frame.f_code.co_filename
    text = linecache.getline(name, number, frame.f_globals).strip()
    return SourceLine(file=shown_file(name), line=number, text=without_folders(text)[:_MOST_TEXT])


def _own(frame: FrameType, line: int, at: int) -> OwnFrame:
    statement = _statement(frame, line, at)
    installed = is_installed(frame.f_code.co_filename)
    code = frame.f_code
    return OwnFrame(
        where=_line_of(frame, line),
        function=code.co_name,
        variables=dict(frame.f_locals),
        statement=statement,
        code=code,
        filename=code.co_filename,
        globals=frame.f_globals,
        installed=installed,
        function_node=_function(frame, line),
    )


def _statement(frame: FrameType, line: int, at: int) -> ast.stmt | None:
    """The innermost statement that the line belongs to; of several on one line that of the instruction `at`."""
    tree = _tree(frame)
    if tree is None:
        return None
    column = next(islice(frame.f_code.co_positions(), at // 2, None), (None, None, None, None))[2]
    best = None
    for node in _statements(tree):
        if not node.lineno <= line <= (node.end_lineno or node.lineno):
            continue
        elsewhere = column is not None and node.lineno == line and node.col_offset > column
        if best is None or not elsewhere:
            best = node
    return best


def _tree(frame: FrameType) -> ast.Module | None:
    return tree_of(frame.f_code.co_filename, frame.f_globals)


def tree_of(filename: str, names: Mapping[str, Any]) -> ast.Module | None:
    """A file parsed; not to be changed. names: the globals of a module of it. None where there is no source."""
    return _parsed("".join(linecache.getlines(filename, dict(names))))


@lru_cache(maxsize=16)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _function(frame: FrameType, line: int) -> ast.AST | None:
    """The innermost function around a line."""
    tree = _tree(frame)
    around = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(around, key=lambda one: one.lineno) if around else None


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Outer ones first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            yield node
