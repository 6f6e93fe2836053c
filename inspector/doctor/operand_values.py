"""What the values of an operand say about a NaN or infinity that an operator made of it: how many, which, where."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from inspector.doctor.constructors import called_name
from inspector.doctor.frames import OwnFrame
from inspector.doctor.values_named import value_of
from inspector.units import human_shape

#: operator -> which of its tensors is at fault.
_AT = {"div": 1, "true_divide": 1, "remainder": 1, "fmod": 1, "floor_divide": 1}
# What torch calls by another name than the operator it runs.
_CALLED = {
    "div": ("div", "true_divide", "divide", "normalize"), "pow": ("pow", "float_power"), "log": ("log",),
    "reciprocal": ("reciprocal", "pow"), "std": ("std",), "var": ("var",),
}  # fmt: skip
Test = Callable[[Tensor], Tensor]


def operand_told(
    name: str, operands: Sequence[Tensor], arguments: Sequence[Any], makes: str, frame: OwnFrame | None
) -> tuple[str, str]:
    """(clause about the operand, remedy); empty where its values tell nothing.

    name: of the operator. operands: its tensors. arguments: all of them. makes: "NaN" or "infinity".
    """
    at = _AT.get(name, 0)
    if len(operands) <= at:
        divisor = arguments[1] if at and len(arguments) > 1 else None
        if divisor == 0:
            return "it divides by the number 0", "Look where that number is made: a length or count that may be 0."
        return "", ""
    x = operands[at]
    called = _name_of(name, x, at, frame)
    if name in ("std", "var", "std_mean", "var_mean"):
        return (
            f"{called} of {human_shape(tuple(x.shape))} has one value where a spread is asked for",
            f"Of one value there is no spread: a batch of two or more, or {name}(..., correction=0).",
        )
    if name in ("mean",) and not x.numel():
        return f"{called} of {human_shape(tuple(x.shape))} is empty", "A mean of nothing is NaN: ask for a length."
    for test, what, remedy in _tests(name, x, operands, arguments, called, makes):
        hits = test(x)
        count = int(hits.sum())
        if count:
            return f"{called} of {human_shape(tuple(x.shape))} {_counted(count, x, what, hits)}", remedy
    return "", ""


def _tests(
    name: str, x: Tensor, operands: Sequence[Tensor], arguments: Sequence[Any], called: str, makes: str
) -> list[tuple[Test, str, str]]:
    """(which values, what they are, remedy)."""
    least = f"{called}.clamp(min=1e-8)"
    zero: Test = lambda t: t == 0  # noqa: E731
    negative: Test = lambda t: t < 0  # noqa: E731
    if name in ("log", "log2", "log10"):
        return [
            (zero, "0", f"log of 0 is -inf: {least} before."),
            (negative, "below 0", f"log of a negative number is NaN: {least} before."),
        ]
    if name == "log1p":
        return [(lambda t: t <= -1, "-1 or less", f"{called}.clamp(min=-1 + 1e-6) before.")]
    if name in ("sqrt", "rsqrt"):
        root = [(negative, "below 0", f"The root of a negative number is NaN: {called}.clamp(min=0) before.")]
        under = [(zero, "0", f"1/sqrt of 0 is infinite: {least} before; {_SUM}")]
        return root + (under if name == "rsqrt" else [])
    if name in ("acos", "asin", "atanh"):
        edge = "x.clamp(-1 + 1e-6, 1 - 1e-6)".replace("x", called, 1)
        beyond: Test = lambda t: t.abs() >= 1 if name == "atanh" else t.abs() > 1  # noqa: E731
        far = bool((x.abs() > 1.01).any())
        why = "A cosine is of vectors of length 1: F.normalize them first, and" if far else "Rounding goes past 1:"
        return [(beyond, "beyond -1 to 1", f"{why} {edge} before.")]
    if name == "acosh":
        return [(lambda t: t < 1, "below 1", f"{called}.clamp(min=1 + 1e-6) before.")]
    if name in ("reciprocal", "div", "true_divide", "remainder", "fmod", "floor_divide"):
        return [(zero, "0", f"A division by 0: {least} or + 1e-8 there." + (f" {_SUM}" if _is_count(x) else ""))]
    if name in ("exp", "exp2", "expm1", "sinh", "cosh"):
        most = math.log(torch.finfo(x.dtype).max) if x.is_floating_point() else 88.0
        return [
            (
                lambda t: t > most,
                f"above {most:.0f}",
                f"exp of that is infinite: {called}.clamp(max=20) before, or a start nearer to 0 for what makes it; of "
                "scores torch.softmax or torch.logsumexp.",
            )
        ]
    if name in ("pow", "float_power"):
        power = arguments[1] if len(arguments) > 1 else None
        number = power if isinstance(power, int | float) else None
        found: list[tuple[Test, str, str]] = []
        if number is not None and number < 0:
            instead = f"{called}.clamp(min=1)" if _is_count(x) else least
            found.append((zero, "0", f"0 to the power {number:g} is infinite: {instead} before. {_SUM}"))
        if number is not None and number != int(number):
            found.append((negative, "below 0", f"A negative number to a broken power is NaN: {called}.abs() or clamp."))
        return found
    return []


_SUM = "Of a sum over neighbours or a mask, 0 means that there are none: self loops, or torch.where with 0."


def _is_count(x: Tensor) -> bool:
    """Whole numbers, as degrees and lengths are."""
    return bool((x == x.round()).all())


def _counted(count: int, x: Tensor, what: str, hits: Tensor) -> str:
    """ "holds a 0 (at 7)", "holds 3 of 40 values below 0 (at 7, 9, 12; least -0.3)"."""
    places = hits.nonzero()[:3].tolist()
    at = ", ".join(str(p[0]) if len(p) == 1 else f"[{', '.join(map(str, p))}]" for p in places) if hits.dim() else ""
    where = f" (at {at}{', ...' if count > 3 else ''})" if at else ""
    worst = ""
    if what.startswith(("below", "above", "beyond", "-1")):
        values = x[hits].double()
        value = float(values[values.abs().argmax()])
        worst = f", as {value:.6g}"
    if count == x.numel() > 1:
        return f"is {what} throughout{worst}"
    if count == 1:
        return f"holds a {what if what == '0' else f'value {what}'}{where}{worst}"
    return f"holds {count:,} of {x.numel():,} values that are {what}{where}{worst}"


def _name_of(name: str, x: Tensor, at: int, frame: OwnFrame | None) -> str:
    """What the line calls the operand."""
    if frame is None or frame.statement is None:
        return "its operand"
    for node in ast.walk(frame.statement):
        if isinstance(node, ast.BinOp) and name in ("div", "true_divide", "pow", "reciprocal", "remainder"):
            wanted = ast.Div if name in ("div", "true_divide", "reciprocal") else ast.Pow
            if isinstance(node.op, wanted):
                return ast.unparse(node.right if wanted is ast.Div else node.left)
        if isinstance(node, ast.Call) and called_name(node) in _CALLED.get(name, (name,)):
            module = isinstance(node.func, ast.Name) or ast.unparse(node.func).partition(".")[0] in ("torch", "F", "np")
            holder = node.func.value if isinstance(node.func, ast.Attribute) else None
            given = [*([] if module or holder is None else [holder]), *node.args]
            if at < len(given):
                return ast.unparse(given[at])
    named = [n for n, value in frame.variables.items() if value is x]
    nodes = [n for n in ast.walk(frame.statement) if isinstance(n, ast.Attribute)]
    named += [ast.unparse(n) for n in nodes if value_of(n, frame.variables) is x]
    return named[0] if named else "its operand"
