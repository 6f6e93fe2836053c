"""What the names and calls of the failing statement stand for; nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from inspector.doctor.scene import Scene
from inspector.doctor.values_named import value_of


@dataclass(frozen=True, slots=True)
class NoTensor:
    """What a module gave that is no tensor. written: the call as it stands in the statement, "" for a variable."""

    value: Any
    path: str
    kind: str
    written: str = ""


def names_used_whole(statement: ast.stmt) -> set[str]:
    """The variables that it uses, but for those that it takes a part of: pair[0]."""
    parts = {
        id(node.value)
        for node in ast.walk(statement)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    }
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and id(node) not in parts}


def no_tensor_called(scene: Scene) -> NoTensor | None:
    """A module that the statement calls, whose output is no tensor and is used whole: x + self.attn(x, x, x)."""
    if scene.frame is None or scene.frame.statement is None:
        return None
    paths = {id(module): path for path, module in scene.model.named_modules()}
    for call in _used_whole(scene.frame.statement):
        module = value_of(call.func, scene.frame.variables)
        path = paths.get(id(module))
        if not isinstance(module, nn.Module) or path is None:
            continue
        given = next((one for one in reversed(scene.recorder.gave_no_tensor.values()) if one[0] == path), None)
        if given is not None and not isinstance(given[2], Tensor):
            return NoTensor(given[2], path, given[1], ast.unparse(call))
    return None


def _used_whole(statement: ast.stmt) -> Iterator[ast.Call]:
    """Calls that are an operand, an argument, or the holder of an attribute; not what is unpacked."""
    for node in ast.walk(statement):
        parts: list[ast.expr] = []
        if isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        elif isinstance(node, ast.AugAssign):
            parts = [node.value]
        elif isinstance(node, ast.UnaryOp):
            parts = [node.operand]
        elif isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Attribute):
            parts = [node.value]
        elif isinstance(node, ast.Call):
            parts = [*node.args, *(keyword.value for keyword in node.keywords)]
            parts += [one for part in node.args if isinstance(part, ast.List | ast.Tuple) for one in part.elts]
        elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
            parts = [node.value, node.slice]
        yield from (part for part in parts if isinstance(part, ast.Call))


def written_argument(scene: Scene) -> str:
    """What the failing line hands to the module that fails, as it is written there; "" where that is not one call."""
    if scene.frame is None or scene.frame.statement is None:
        return ""
    running = {id(call.module) for call in scene.raised.calls}
    calls = [n for n in ast.walk(scene.frame.statement) if isinstance(n, ast.Call) and len(n.args) == 1]
    named = [n for n in calls if id(value_of(n.func, scene.frame.variables)) in running]
    return ast.unparse(named[0].args[0]) if len(named) == 1 else ""
