"""Which lines of a traceback are the person's own, and what stood in their variables."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

import torch
from torch import nn

from inspector.doctor.report import SourceLine

# With the separator: torchvision is none of torch.
_TORCH = str(Path(torch.__file__).parent) + os.sep
_OURS = str(Path(__file__).resolve().parents[1]) + os.sep
_PYTHON = sysconfig.get_paths()["stdlib"]
_PACKAGES = re.compile(r".*(?:site-packages|dist-packages)[/\\]")
_PATH = re.compile(r"(?<![:/\w])(?:[A-Za-z]:)?[\\/](?:[^\s:'\"<>|]+[\\/])+([^\s:'\"<>|\\/]+)")
_MOST_TEXT = 400


@dataclass(frozen=True, slots=True, eq=False)
class OwnFrame:
    """A frame of the model's code. statement: parsed, None where its source is not to be had."""

    where: SourceLine
    function: str
    variables: Mapping[str, Any]
    statement: ast.stmt | None


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


def own_line() -> SourceLine | None:
    """The line of the model's code that is running now, innermost; None where none is."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and not is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else _line_of(frame)


def forward_code(module: nn.Module) -> CodeType | None:
    """Of its class's forward; None where that is no plain Python function (TorchScript)."""
    return getattr(inspect.getattr_static(type(module), "forward", None), "__code__", None)


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
    return OwnFrame(_line_of(frame, line), frame.f_code.co_name, dict(frame.f_locals), statement)


def _statement(frame: FrameType, line: int, at: int) -> ast.stmt | None:
    """The innermost statement that the line belongs to; of several on one line that of the instruction `at`."""
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):
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


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Outer ones first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            yield node
