"""Methods x layers x classes of one picture."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from PIL import Image
from torch import nn

from inspector.cam.describe import Setting, explanation_of
from inspector.cam.engine.maps import Axes, heat_grid, of_input
from inspector.cam.engine.tensors import shape_of
from inspector.cam.inputs.preprocess import prepare
from inspector.cam.layers.layouts import layer_name
from inspector.cam.report import PLAIN, Explanation, Grid, LayerProposal, Made, Maps, Options
from inspector.cam.spec import MapSpec
from inspector.errors import ExplainError, UsageError
from inspector.progress import Progress, silent

_Cell = TypeVar("_Cell")
_Changed = TypeVar("_Changed")
# [class][layer][method]: a map, or why there is none.
Cells = tuple[tuple[tuple[_Cell | ExplainError, ...], ...], ...]


def explain_grid(
    model: nn.Module,
    picture: Image.Image,
    axes: Axes,
    setting: Setting,
    *,
    options: Options = PLAIN,
    progress: Progress = silent,
) -> Grid:
    """Methods x layers x classes of one picture from one forward.

    A method that has no map at a layer of this model is said so in `refused`; where that is all of them it is raised.
    Fusion is no option here. Otherwise as `explain`.
    """
    start = time.perf_counter()
    if options.fusion:
        raise UsageError("A grid keeps its layers apart.", hint="Leave the fusion out.")
    if not axes.methods or not axes.classes:
        raise UsageError("A grid needs a method and a class at least.")
    batch, crop = prepare(picture, setting.preprocessing)
    asked = setting.question.ask(model, batch, [crop])
    layers = axes.found(model, shape_of(batch))
    axes = replace(axes, layers=layers, classes=axes.classes if asked.columns is None else asked.columns)
    maps = heat_grid(model, batch, axes, options=options, read=asked.read, progress=progress, lenient=True)
    if options.augmented:

        def augmented(one: Maps) -> Maps:
            spec = MapSpec(method=one.method, layers=(one.layer,), options=options)
            return spec.make(model, batch, targets=one.targets, read=asked.read, progress=progress).maps

        maps = _each(maps, augmented)
    seconds = time.perf_counter() - start

    def described(one: Maps) -> Explanation:
        made = Made(maps=one, options=options)
        return explanation_of(model, batch, made, crop=crop, setting=setting, asked=asked, seconds=seconds)

    return _grid(_each(maps, described), layers or (of_input(shape_of(batch)),), axes.methods, seconds)


def _each(cells: Cells[_Cell], change: Callable[[_Cell], _Changed]) -> Cells[_Changed]:
    """The same with every map changed."""
    return tuple(
        tuple(tuple(cell if isinstance(cell, ExplainError) else change(cell) for cell in row) for row in rows)
        for rows in cells
    )


def _grid(cells: Cells[Explanation], layers: Sequence[LayerProposal], methods: Sequence[str], seconds: float) -> Grid:
    """Raises why there is no map where there is none for the first class."""
    errors = [
        (name, layer_name(layer), cell)
        for layer, row in zip(layers, cells[0], strict=True)
        for name, cell in zip(methods, row, strict=True)
        if isinstance(cell, ExplainError)
    ]
    maps = [[[None if isinstance(cell, ExplainError) else cell for cell in row] for row in rows] for rows in cells]
    first = [next((cell for row in rows for cell in row if cell is not None), None) for rows in maps]
    if first[0] is None:
        raise errors[0][2]
    return Grid(
        cells=tuple(tuple(tuple(row) for row in rows) for rows in maps),
        layers=tuple(layers),
        methods=tuple(methods),
        targets=tuple(one.target for one in first if one is not None),
        refused=tuple((name, path, error.says) for name, path, error in errors),
        scores=first[0].scores,
        seconds=seconds,
    )
