"""The little arithmetic of templates: sizes as expressions over symbols, read in both directions.

"3*hidden" is a size once `hidden` is known, and tells `hidden` once the size is known. Symbols stand for what a file
shows (`hidden`) or for one value per index (`width[s]`); the indices of repeated parts are numbers in them. Written as
Python expressions of whole numbers: + - * // %, comparisons, and, or, not, and "a if condition else b".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, MutableMapping
from functools import lru_cache

# A symbol's value for some indices: ("hidden", ()) or ("width", (2,)).
Ref = tuple[str, tuple[int, ...]]
Values = MutableMapping[Ref, int]

_MOST = 1 << 62


@lru_cache(maxsize=8192)
def parse(text: str) -> ast.expr:
    """The expression, parsed once. Raises ValueError for anything else than the arithmetic above."""
    body = ast.parse(text, mode="eval").body
    for node in ast.walk(body):
        if not isinstance(node, _ALLOWED) or (isinstance(node, ast.Constant) and not isinstance(node.value, int)):
            raise ValueError(f'"{text}" is no expression of a template')
    return body


_ALLOWED = (
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Constant, ast.Name, ast.Load, ast.Subscript),
    *(ast.Tuple, ast.IfExp, ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.BoolOp, ast.And),
    *(ast.Or, ast.UnaryOp, ast.Not, ast.USub),
)


def evaluate(node: ast.expr, values: Mapping[Ref, int], at: Mapping[str, int]) -> int | None:
    """The expression's value, None while a symbol in it is unknown.

    values: what is known of the symbols. at: the indices of the repeated parts that the expression stands in.
    """
    match node:
        case ast.Constant(value=int() as value):
            return int(value)
        case ast.Name(id=name):
            return at[name] if name in at else values.get((name, ()))
        case ast.Subscript():
            ref = ref_of(node, values, at)
            return None if ref is None else values.get(ref)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = evaluate(left, values, at), evaluate(right, values, at)
            return None if a is None or b is None else _compute(op, a, b)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            truth = evaluate(test, values, at)
            return None if truth is None else evaluate(body if truth else orelse, values, at)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            a, b = evaluate(left, values, at), evaluate(right, values, at)
            return None if a is None or b is None else int(_compare(op, a, b))
        case ast.BoolOp(op=ast.And(), values=parts):
            return _all(parts, values, at)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return _any(parts, values, at)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            truth = evaluate(operand, values, at)
            return None if truth is None else int(not truth)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = evaluate(operand, values, at)
            return None if negated is None else -negated
    raise ValueError(f'"{ast.unparse(node)}" cannot be computed in a template')


def solve(node: ast.expr, size: int, values: Mapping[Ref, int], at: Mapping[str, int]) -> tuple[Ref, int] | None:
    """The one unknown symbol's value under which the expression has this size; None when there is no such thing."""
    match node:
        case ast.Name(id=name):
            return None if name in at or (name, ()) in values else ((name, ()), size)
        case ast.Subscript():
            ref = ref_of(node, values, at)
            return None if ref is None or ref in values else (ref, size)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            truth = evaluate(test, values, at)
            return None if truth is None else solve(body if truth else orelse, size, values, at)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = evaluate(left, values, at), evaluate(right, values, at)
            if (a is None) == (b is None):
                return None
            wanted = _undo(op, size, a, b)
            return None if wanted is None else solve(left if a is None else right, wanted, values, at)
    return None


def ref_of(node: ast.Subscript, values: Mapping[Ref, int], at: Mapping[str, int]) -> Ref | None:
    """Which value of an indexed symbol is meant, None while the index is unknown."""
    assert isinstance(node.value, ast.Name)
    found = [evaluate(index, values, at) for index in indices_of(node)]
    known = tuple(index for index in found if index is not None)
    return (node.value.id, known) if len(known) == len(found) else None


def indices_of(node: ast.Subscript) -> list[ast.expr]:
    """The expressions between the brackets."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def symbols_in(node: ast.expr) -> Iterator[tuple[str, tuple[ast.expr, ...]]]:
    """Every symbol of an expression with its indices, those inside brackets left out."""
    if isinstance(node, ast.Subscript):
        assert isinstance(node.value, ast.Name)
        yield node.value.id, tuple(indices_of(node))
    elif isinstance(node, ast.Name):
        yield node.id, ()
    else:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from symbols_in(child)


def _compute(op: ast.operator, a: int, b: int) -> int | None:
    match op:
        case ast.Add():
            result = a + b
        case ast.Sub():
            result = a - b
        case ast.Mult():
            result = a * b
        case ast.FloorDiv() if b:
            result = a // b
        case ast.Mod() if b:
            result = a % b
        case _:
            return None
    # Sizes come from files: a product of many large ones would grow without end.
    return result if abs(result) < _MOST else None


def _undo(op: ast.operator, size: int, a: int | None, b: int | None) -> int | None:
    """The unknown operand, where there is exactly one."""
    known = a if a is not None else b
    assert known is not None
    match op:
        case ast.Add():
            return size - known
        case ast.Sub():
            return size + known if b is not None else known - size
        case ast.Mult() if known and size % known == 0:
            return size // known
    return None


def _compare(op: ast.cmpop, a: int, b: int) -> bool:
    match op:
        case ast.Eq():
            return a == b
        case ast.NotEq():
            return a != b
        case ast.Lt():
            return a < b
        case ast.LtE():
            return a <= b
        case ast.Gt():
            return a > b
        case ast.GtE():
            return a >= b
    raise ValueError(f"{type(op).__name__} is no comparison of a template")


def _all(parts: list[ast.expr], values: Mapping[Ref, int], at: Mapping[str, int]) -> int | None:
    found = [evaluate(part, values, at) for part in parts]
    if any(one == 0 for one in found):
        return 0
    return None if None in found else 1


def _any(parts: list[ast.expr], values: Mapping[Ref, int], at: Mapping[str, int]) -> int | None:
    found = [evaluate(part, values, at) for part in parts]
    if any(found):
        return 1
    return None if None in found else 0
