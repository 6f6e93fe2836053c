"""Masks of another type than the function takes: masked_fill, where and indices want bool."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from inspector.doctor.causes.entry import Cause
from inspector.doctor.report import Diagnosis
from inspector.doctor.scene import Scene

_MESSAGE = re.compile(
    r"only supports boolean masks|where expected condition to be a boolean|expected BoolTensor for mask|"
    r"(?:attn_mask|mask) dtype to be bool|only bool and floating types of \w+ are supported"
)
_INDEX = re.compile(r"tensors used as indices must be")
# What each function's mask is called, and where it stands among its arguments (x.masked_fill(mask, value)).
_PLACES = {
    "masked_fill": ("mask", 1), "masked_fill_": ("mask", 1), "masked_scatter": ("mask", 1),
    "masked_scatter_": ("mask", 1), "masked_select": ("mask", 1), "where": ("condition", 0),
    "scaled_dot_product_attention": ("attn_mask", 3), "__getitem__": ("", 1), "__setitem__": ("", 1),
}  # fmt: skip


def find_mask_type(scene: Scene) -> Diagnosis | None:
    """Integers or floating point where True and False are wanted."""
    named, args, kwargs = _asked(scene)
    if named not in _PLACES or not isinstance(scene.error, RuntimeError | IndexError):
        return None
    if not (_MESSAGE.search(scene.text) or (named in ("__getitem__", "__setitem__") and _INDEX.search(scene.text))):
        return None
    mask = _mask_of(named, args, kwargs)
    if mask is None or mask.dtype is torch.bool:
        return None
    if not _MESSAGE.search(scene.text) and not _is_of_zeros_and_ones(mask):
        return None  # Positions that a division made floating point.

    def as_bool(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], Any] | None:
        given = _mask_of(name, args, kwargs) if name in _PLACES else None
        if given is None or given.dtype is torch.bool or (name.startswith("__") and given.dtype is torch.int64):
            return None
        word, at = _PLACES[name]
        if word in kwargs:
            return args, {**kwargs, word: given.bool()}
        return [given.bool() if i == at else value for i, value in enumerate(args)], kwargs

    ran = scene.trials.runs_replaced(as_bool, scene.args, scene.kwargs)
    kind = str(mask.dtype).removeprefix("torch.")
    word = "a condition" if named == "where" else "a mask"
    function = "An index in brackets" if named.startswith("__") else named
    meaning = "as integers its numbers would be positions" if named.startswith("__") else "it is no mask"
    code, plain = _written(scene, named)
    return Diagnosis(
        cause="mask-type",
        says=f"{function} in {scene.path} takes {word} of True and False and received {kind}: {scene.told(mask)}; "
        f"{meaning} until it is bool.",
        fix="Make it bool: mask.bool() for what is not 0, mask == 0 for the opposite."
        + ("" if plain else " ~ turns the bits of an integer, so that nothing becomes 0."),
        code=code,
        tried=("the mask as bool: runs through",) if ran else (),
    )


def _asked(scene: Scene) -> tuple[str, Sequence[Any], Mapping[str, Any]]:
    name, (args, kwargs) = scene.recorder.function_name, scene.recorder.function_args
    return name, args, kwargs


def _mask_of(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor | None:
    word, at = _PLACES[name]
    found = kwargs.get(word, args[at] if len(args) > at else None)
    return found if isinstance(found, Tensor) and not isinstance(found, nn.Parameter) else None


def _is_of_zeros_and_ones(mask: Tensor) -> bool:
    with torch.no_grad():
        return not mask.is_meta and bool(((mask == 0) | (mask == 1)).all())


def _written(scene: Scene, name: str) -> tuple[str, bool]:
    """What to write for the mask as it stands in the failing line; whether that is no ~ of integers."""
    statement = scene.frame.statement if scene.frame is not None else None
    word, at = _PLACES[name]
    for node in ast.walk(statement) if statement is not None else ():
        found: ast.expr | None = None
        if isinstance(node, ast.Subscript) and name.startswith("__"):
            found = node.slice
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called != name:
                continue
            # x.masked_fill(mask, 0) hands x on before the others, torch.masked_fill(x, mask, 0) does not.
            module = isinstance(node.func, ast.Name) or ast.unparse(node.func).partition(".")[0] in ("torch", "F", "nn")
            place = at if module else at - 1
            named = {one.arg: one.value for one in node.keywords}
            found = named.get(word, node.args[place] if 0 <= place < len(node.args) else None)
        if found is None or isinstance(found, ast.Tuple | ast.Slice):
            continue
        if isinstance(found, ast.UnaryOp) and isinstance(found.op, ast.Invert):
            return f"{_bracketed(found.operand)} == 0", False
        one = isinstance(found, ast.BinOp) and isinstance(found.op, ast.Sub) and isinstance(found.left, ast.Constant)
        if one and found.left.value == 1:  # type: ignore[attr-defined]
            return f"{_bracketed(found.right)} == 0", True  # type: ignore[attr-defined]
        return f"{_bracketed(found)}.bool()", True
    return "mask.bool()", True


def _bracketed(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call) else f"({text})"


CAUSES = (Cause(kinds=("mask-type",), find=find_mask_type),)
