"""What the names of a statement stand for; nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from torch import nn


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
