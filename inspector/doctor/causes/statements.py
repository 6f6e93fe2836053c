"""What the names and calls of the failing statement stand for; nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from inspector.doctor.scene import Scene


@dataclass(frozen=True, slots=True)
class NoTensor:
    """What a module gave that is no tensor. written: the call as it stands in the statement, "" for a variable."""

    value: Any
    path: str
    kind: str
    written: str = ""


def value_of(node: ast.expr, variables: Mapping[str, Any]) -> Any:
    """What a name or a dotted name stands for; attributes of modules and plain ones alone, nothing is called."""
    if isinstance(node, ast.Name):
        return variables.get(node.id)
    if isinstance(node, ast.Attribute):
        holder = value_of(node.value, variables)
        if isinstance(holder, nn.Module):
            for place in (holder._modules, holder._parameters, holder._buffers, vars(holder)):
                if node.attr in place:
                    return place[node.attr]
    if isinstance(node, ast.Subscript):
        return _entry_of(value_of(node.value, variables), node.slice, variables)
    return None


def _entry_of(holder: Any, index: ast.expr, variables: Mapping[str, Any]) -> Any:
    """Of torch's own lists and dicts of modules."""
    key = index.value if isinstance(index, ast.Constant) else value_of(index, variables)
    if type(holder) in (nn.ModuleList, nn.Sequential, nn.ModuleDict) and isinstance(key, int | str):
        modules = list(holder._modules.values())
        if isinstance(key, str):
            return holder._modules.get(key)
        return modules[key] if -len(modules) <= key < len(modules) else None
    return None


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
