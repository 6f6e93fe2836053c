"""Functions that take an index: scatter, gather, index_add and masks, whose shapes have rules of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from inspector.doctor.causes.entry import Cause
from inspector.doctor.report import Diagnosis
from inspector.doctor.scene import Scene
from inspector.units import counted, human_shape

_SPREADS = ("scatter", "scatter_add", "scatter_reduce")
_ROWS = ("index_add", "index_copy", "index_reduce")
_NAMES = {
    **dict.fromkeys(_SPREADS, ("input", "dim", "index", "src")),
    **dict.fromkeys(_ROWS, ("input", "dim", "index", "source")),
    "gather": ("input", "dim", "index"),
    "take_along_dim": ("input", "indices", "dim"),
    "index_select": ("input", "dim", "index"),
}
_MASK = re.compile(r"[Tt]he shape of the mask \[[\d, ]*\] at index \d+ does not match the shape of the indexed tensor")
_TOGETHER = re.compile(r"indexing tensors could not be broadcast together")


def find_index_shape(scene: Scene) -> Diagnosis | None:
    """An index of another shape than its function takes."""
    if not isinstance(scene.error, RuntimeError | IndexError):
        return None
    name = scene.recorder.function_name.strip("_")
    if name not in _NAMES:
        return _of_brackets(scene)
    args, kwargs = scene.recorder.function_args
    given = {**dict(zip(_NAMES[name], args, strict=False)), **_aliased(kwargs)}
    target, index, source = given.get("input"), given.get("index"), given.get("src", given.get("source"))
    dim = given.get("dim")
    if not isinstance(target, Tensor) or not isinstance(index, Tensor) or not isinstance(dim, int):
        return None
    if not target.dim() or not -target.dim() <= dim < target.dim():
        return None
    axis = dim % target.dim()
    if name in _ROWS or name == "index_select":
        return _of_rows(scene, name, target, index, source if isinstance(source, Tensor) else None, axis)
    return _of_places(scene, name, target, index, source if isinstance(source, Tensor) else None, axis)


def _aliased(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {"index" if name == "indices" else name: value for name, value in kwargs.items()}


def _of_places(
    scene: Scene, name: str, target: Tensor, index: Tensor, source: Tensor | None, axis: int
) -> Diagnosis | None:
    """One index for each number that is taken or put."""
    partner = source if source is not None else target
    called = scene.variable_of(index) or "index"
    says = f"{name} in {scene.path} takes an index for each number: {scene.told(index)} beside {scene.told(partner)}."
    if index.dim() != target.dim():
        rows = index.dim() == 1 and partner.dim() > 1 and axis < partner.dim()
        if rows and source is not None and index.shape[0] == partner.shape[axis]:
            view, sizes = ["1"] * partner.dim(), list(map(str, partner.shape))
            view[axis] = sizes[axis] = "-1"
            more = {"scatter_add": f"; or index_add({axis}, {called}, ...), which takes one index for each row"}
            return Diagnosis(
                cause="index-shape",
                says=f"{says} It has {counted(index.dim(), 'dimension')} and needs {target.dim()}.",
                fix=f"Repeat it over the other dimensions{more.get(name, '')}.",
                code=f"{called} = {called}.view({', '.join(view)}).expand({', '.join(sizes)})",
            )
        if index.dim() == target.dim() - 1:
            return Diagnosis(
                cause="index-shape",
                says=f"{says} It has {counted(index.dim(), 'dimension')} and needs {target.dim()}.",
                fix=f"Give it the dimension that is looked up in, of size 1; what comes out has it, too: "
                f".squeeze({axis}).",
                code=f"{called} = {called}.unsqueeze({axis})",
            )
        return Diagnosis(
            cause="index-shape",
            says=f"{says} It has {counted(index.dim(), 'dimension')} and needs {target.dim()}.",
            fix="Index and tensor need equally many dimensions.",
        )
    larger = [i for i in range(index.dim()) if i != axis and index.shape[i] > target.shape[i]]
    larger += [] if source is None else [i for i in range(index.dim()) if index.shape[i] > source.shape[i]]
    if not larger:
        return None
    return Diagnosis(
        cause="index-shape",
        says=f"{says} In dimension {larger[0]} the index has {index.shape[larger[0]]:,}, which is more.",
        fix=f"But in dimension {axis} it may be no larger than the tensor, and nowhere larger than what is put there.",
    )


def _of_rows(
    scene: Scene, name: str, target: Tensor, index: Tensor, source: Tensor | None, axis: int
) -> Diagnosis | None:
    """One index for each row."""
    says = f"{name} in {scene.path} takes one index for each entry of dimension {axis}: {scene.told(index)}"
    says += f", {scene.told(source)}" if source is not None else ""
    if index.dim() > 1:
        return Diagnosis(
            cause="index-shape",
            says=f"{says}.",
            fix="The index has one dimension." + (" gather takes one index for each number." if source is None else ""),
            code=f"{scene.variable_of(index) or 'index'}.flatten()",
        )
    if source is None:
        return None
    if source.dim() != target.dim() or index.numel() != source.shape[axis]:
        return Diagnosis(
            cause="index-shape",
            says=f"{says}.",
            fix=f"There are to be as many indices as the source has entries in dimension {axis}.",
        )
    if any(m != n for i, (m, n) in enumerate(zip(source.shape, target.shape, strict=True)) if i != axis):
        return Diagnosis(
            cause="index-shape",
            says=f"{says}, put into {scene.told(target)}.",
            fix=f"All dimensions but {axis} have to be equal.",
        )
    return None


def _of_brackets(scene: Scene) -> Diagnosis | None:
    """x[mask] and x[a, b]."""
    mask, together = _MASK.search(scene.text), _TOGETHER.search(scene.text)
    tensors = scene.function_tensors
    if not (mask or together) or len(tensors) < 2:
        return None
    target, *indices = tensors
    told = " and ".join(scene.told(t) for t in indices[:3])
    if together:
        return Diagnosis(
            cause="index-shape",
            says=f"{scene.path} indexes {scene.told(target)} by {told}: they do not fit each other.",
            fix="Indices side by side are paired: for every pair of them make one a column, rows[:, None].",
        )
    masks = [t for t in indices if t.dtype in (torch.bool, torch.uint8)]
    if not masks:
        return None
    fix = "A mask has the sizes of the dimensions that it stands for, from the first on."
    turned = masks[0].dim() == 2 and tuple(masks[0].shape[::-1]) == tuple(target.shape[:2])
    return Diagnosis(
        cause="index-shape",
        says=f"{scene.path} takes {scene.told(target)} by a mask of {human_shape(tuple(masks[0].shape))}.",
        fix=f"{fix} Its two stand the other way round." if turned else fix,
        code="x[mask.t()]" if turned else "",
    )


CAUSES = (Cause(kinds=("index-shape",), find=find_index_shape),)
