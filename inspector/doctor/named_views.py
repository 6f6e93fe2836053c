"""A view whose sizes are named after dimensions, h * w and c, in another order than memory has them.

view(b, h * w, c) of b x c x h x w runs, and puts values of one channel side by side as if they were channels. Which
size is meant by a name the source says: b, c, h, w = x.shape.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inspector.doctor.frames import OwnFrame

_VIEWS = ("view", "reshape")


@dataclass(frozen=True, slots=True)
class Misnamed:
    """written: the size as the line writes it ("h * w"). remedy: what moves the values."""

    written: str
    remedy: str


@dataclass(frozen=True, slots=True)
class _Dimensions:
    """Dimensions of what a source text names: of "x" the third and fourth."""

    of: str
    at: tuple[int, ...]
    line: tuple[int, int]


def misnamed_view(before: tuple[int, ...], after: tuple[int, ...], frame: OwnFrame | None) -> Misnamed | None:
    """The first size of a view that is named after a dimension of `before`, and does not hold its values."""
    if frame is None or frame.statement is None or frame.function_node is None:
        return None
    call = _call_of(frame.statement, len(after))
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    sizes = _sizes(call)
    if any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add | ast.Sub) for one in sizes for n in ast.walk(one)):
        return None
    bound = _bound(frame.function_node, _place(call))
    receiver = ast.unparse(call.func.value)
    for place, size in enumerate(sizes):
        named = _resolved(size, bound)
        if named is None or after[place] < 2:
            continue
        exact = _exact(named, receiver, before, frame, _place(call))
        group = exact or _by_value(after[place], before)
        if group is None or math.prod(before[i] for i in group) != after[place]:
            continue
        if math.prod(before[group[-1] + 1 :]) == math.prod(after[place + 1 :]):
            continue
        # Of equal sizes another name may stand for the same dimension.
        if exact is None and _intact(group, before, after):
            continue
        return Misnamed(ast.unparse(size), _remedy(receiver, before, after, sizes))
    return None


def _call_of(statement: ast.stmt, count: int) -> ast.Call | None:
    """The only view of the statement with so many sizes."""
    found = [
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _VIEWS
        and ast.unparse(node.func.value) != "torch"
        and len(_sizes(node)) == count
        and not any(isinstance(one, ast.Starred) for one in _sizes(node))
    ]
    return found[0] if len(found) == 1 else None


def _sizes(call: ast.Call) -> Sequence[ast.expr]:
    if len(call.args) == 1 and isinstance(call.args[0], ast.Tuple | ast.List):
        return call.args[0].elts
    return call.args


def _place(node: ast.stmt | ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _bound(function: ast.AST, before: tuple[int, int]) -> dict[str, _Dimensions]:
    """What names stand for by the place `before`: b, c, h, w = x.shape; n = x.size(1); hw = h * w."""
    found: dict[str, _Dimensions] = {}
    assigned = [n for n in ast.walk(function) if isinstance(n, ast.Assign) and _place(n) < before]
    for statement in sorted(assigned, key=_place):
        for target in statement.targets:
            if isinstance(target, ast.Name):
                found.pop(target.id, None)
                one = _resolved(statement.value, found)
                if one is not None:
                    found[target.id] = _Dimensions(one.of, one.at, _place(statement))
            elif isinstance(target, ast.Tuple):
                names = [one.id if isinstance(one, ast.Name) else "" for one in target.elts]
                whole = _whole_shape(statement.value)
                starred = any(isinstance(one, ast.Starred) for one in target.elts)
                for at, name in enumerate(names):
                    found.pop(name, None)
                    if whole is not None and name not in ("", "_") and not starred:
                        found[name] = _Dimensions(whole, (at,), _place(statement))
    return found


def _whole_shape(node: ast.expr) -> str | None:
    """ "x" of x.shape and x.size()."""
    if isinstance(node, ast.Attribute) and node.attr == "shape":
        return ast.unparse(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size":
        return ast.unparse(node.func.value) if not node.args else None
    return None


def _resolved(node: ast.expr, bound: Mapping[str, _Dimensions]) -> _Dimensions | None:
    """The dimensions whose product an expression is; None where it is anything else."""
    if isinstance(node, ast.Name):
        return bound.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        a, b = _resolved(node.left, bound), _resolved(node.right, bound)
        return _Dimensions(a.of, a.at + b.at, max(a.line, b.line)) if a and b and a.of == b.of else None
    index: ast.expr | None = None
    of: str | None = None
    if isinstance(node, ast.Subscript):
        of, index = _whole_shape(node.value), node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size":
        of, index = ast.unparse(node.func.value), node.args[0] if len(node.args) == 1 else None
    if of and isinstance(index, ast.Constant) and isinstance(index.value, int) and index.value >= 0:
        return _Dimensions(of, (index.value,), _place(node))
    return None


def _exact(
    named: _Dimensions, receiver: str, before: tuple[int, ...], frame: OwnFrame, place: tuple[int, int]
) -> tuple[int, ...] | None:
    """By the name alone, where what is viewed is what the sizes were taken of, and was not assigned since."""
    if named.of != receiver or any(i >= len(before) for i in named.at):
        return None
    for node in ast.walk(frame.function_node) if frame.function_node is not None else ():
        if isinstance(node, ast.Assign | ast.AugAssign) and named.line < _place(node) < place:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(ast.unparse(t) == receiver for t in targets):
                return None
    at = tuple(sorted(named.at))
    return at if at == tuple(range(at[0], at[-1] + 1)) else None


def _by_value(size: int, before: tuple[int, ...]) -> tuple[int, ...] | None:
    """The only neighbours among the dimensions whose product that is; None where there are several, or none."""
    found = [
        tuple(range(first, last + 1))
        for first in range(len(before))
        for last in range(first, len(before))
        if before[first] > 1 and before[last] > 1 and math.prod(before[first : last + 1]) == size
    ]
    return found[0] if len(found) == 1 else None


def _intact(group: tuple[int, ...], before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Whether the dimensions are still there, under another size."""
    size, behind = math.prod(before[i] for i in group), math.prod(before[group[-1] + 1 :])
    return any(n == size and math.prod(after[i + 1 :]) == behind for i, n in enumerate(after))


def _remedy(receiver: str, before: tuple[int, ...], after: tuple[int, ...], sizes: Sequence[ast.expr]) -> str:
    if len(before) == 4 and len(after) == 3 and (after[1], after[2]) == (before[2] * before[3], before[1]):
        return f"{receiver}.flatten(2).transpose(1, 2) moves the channels last."
    if len(before) == 3 and len(after) == 4 and after[2] == before[1] and after[1] * after[3] == before[2]:
        written = [ast.unparse(one) for one in sizes]
        inner = f"{written[0]}, {written[2]}, {written[1]}, {written[3]}"
        return f"{receiver}.view({inner}).transpose(1, 2) splits the last dimension and then moves it."
    if len(before) == 4 and len(after) == 3 and after[1] == before[2] and after[2] == before[1] * before[3]:
        return f"{receiver}.transpose(1, 2).reshape({', '.join(map(ast.unparse, sizes))}): move first, then join."
    return "Move the dimensions first, by permute or transpose, and join or split them after that."
