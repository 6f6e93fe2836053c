"""Methods x layers x classes of one picture, and what maps will cost before they are made."""

from __future__ import annotations

import time
from collections.abc import Sequence

from PIL import Image
from torch import nn

from inspector.cam.answers import AnswerKind
from inspector.cam.combine import AUGMENTED_MAPS
from inspector.cam.describe import PLAIN, explanation_of
from inspector.cam.layouts import layer_name
from inspector.cam.maps import choose_layers, heat_grids, of_input
from inspector.cam.method import Method
from inspector.cam.methods import method_named
from inspector.cam.preprocess import prepare
from inspector.cam.questions import A_CLASS, Question
from inspector.cam.report import Estimate, Explanation, Grid, LayerProposal, Maps, Options, Preprocessing
from inspector.cam.scene import Scene, open_scene
from inspector.cam.spec import MapSpec
from inspector.errors import ExplainError, UsageError
from inspector.progress import Progress, silent

# What a backward costs, in forward passes.
_BACKWARD = 2


def explain_grid(
    model: nn.Module,
    picture: Image.Image,
    *,
    preprocessing: Preprocessing,
    layers: Sequence[LayerProposal | str] | None = None,
    methods: Sequence[str] = ("grad-cam",),
    targets: Sequence[int | None] = (None,),
    categories: Sequence[str] = (),
    top: int = 5,
    most_layers: int | None = 4,
    options: Options = PLAIN,
    question: Question = A_CLASS,
    answer: AnswerKind = AnswerKind.ONE,
    progress: Progress = silent,
) -> Grid:
    """Methods x layers x classes of one picture from one forward.

    layers: None for the proposed ones, at most `most_layers`. targets: class indices, None for the model's best. A
    method that has no map at a layer of this model is said so in `refused`; where that is all of them it is raised.
    Fusion is no option here. Otherwise as `explain`.
    """
    start = time.perf_counter()
    if options.fusion:
        raise UsageError("A grid keeps its layers apart.", hint="Leave the fusion out.")
    if not methods or not targets:
        raise UsageError("A grid needs a method and a class at least.")
    batch, crop = prepare(picture, preprocessing)
    asked = question.ask(model, batch, [crop])
    columns: Sequence[int | None] = targets if asked.columns is None else asked.columns
    shape = (batch.shape[1], batch.shape[2], batch.shape[3])
    of_layers = any(method_named(name).by_layer for name in methods)
    chosen = choose_layers(model, layers, shape, most_layers) if of_layers else ()
    made = heat_grids(
        model,
        batch,
        classes=list(columns),
        layers=chosen,
        methods=methods,
        eigen_smooth=options.eigen_smooth,
        read=asked.read,
        progress=progress,
        seed=options.seed,
        lenient=True,
    )
    if options.augmented:

        def smoothed(cell: Maps | ExplainError) -> Maps | ExplainError:
            if isinstance(cell, ExplainError):
                return cell
            spec = MapSpec(method=cell.method, layers=(cell.layer,), options=options)
            return spec.make(model, batch, targets=cell.targets, read=asked.read, progress=progress).maps

        made = tuple(tuple(tuple(smoothed(cell) for cell in row) for row in rows) for rows in made)
    places = chosen or (of_input(batch),)
    seconds = time.perf_counter() - start

    def cell_of(cell: Maps | ExplainError) -> Explanation | None:
        if isinstance(cell, ExplainError):
            return None
        return explanation_of(
            model,
            batch,
            cell,
            crop=crop,
            preprocessing=preprocessing,
            categories=categories,
            top=top,
            asked=asked,
            answer=answer,
            options=options,
            seconds=seconds,
        )

    cells = tuple(tuple(tuple(cell_of(cell) for cell in row) for row in rows) for rows in made)
    errors = [
        (name, layer_name(place), cell)
        for place, row in zip(places, made[0], strict=True)
        for name, cell in zip(methods, row, strict=True)
        if isinstance(cell, ExplainError)
    ]
    first = [next((cell for row in rows for cell in row if cell is not None), None) for rows in cells]
    if first[0] is None:
        raise errors[0][2]
    return Grid(
        cells=cells,
        layers=places,
        methods=tuple(methods),
        targets=tuple(cell.target for cell in first if cell is not None),
        refused=tuple((name, path, error.says) for name, path, error in errors),
        scores=first[0].scores,
        seconds=seconds,
    )


def estimate(
    model: nn.Module,
    picture: Image.Image,
    *,
    preprocessing: Preprocessing,
    layers: Sequence[LayerProposal | str] | None = None,
    methods: Sequence[str] = ("grad-cam",),
    classes: int = 1,
    most_layers: int | None = 1,
    options: Options = PLAIN,
    question: Question = A_CLASS,
) -> Estimate:
    """What such maps will cost; runs the model once to know how long that takes, and once to find the layers.

    Arguments as `explain_grid`.
    """
    entries = [method_named(name) for name in methods]
    batch, crop = prepare(picture, preprocessing)
    read = question.ask(model, batch, [crop]).read
    shape = (batch.shape[1], batch.shape[2], batch.shape[3])
    chosen = choose_layers(model, layers, shape, most_layers) if any(entry.by_layer for entry in entries) else ()
    start = time.perf_counter()
    with open_scene(model, batch, chosen, 0, read=read) as scene:
        seconds = time.perf_counter() - start
        objectives = {entry.objective for entry in entries if entry.arithmetic and entry.gradient}
        costs = [
            _own_cost(entry, scene, chosen if entry.by_layer else (of_input(batch),), seconds) for entry in entries
        ]
    by_method = tuple((entry.id, classes * passes) for entry, (passes, _) in zip(entries, costs, strict=True))
    own_seconds = classes * sum(one for _, one in costs)
    shared = 1 + _BACKWARD * classes * len(objectives)
    if options.augmented:
        maps = max(1, len(chosen)) * classes
        shared += AUGMENTED_MAPS * maps * sum(1 + _BACKWARD * (e.arithmetic is not None) for e in entries)
        by_method = tuple((name, passes * (AUGMENTED_MAPS + 1)) for name, passes in by_method)
        own_seconds *= AUGMENTED_MAPS + 1
    total = shared + sum(passes for _, passes in by_method)
    return Estimate(passes=total, by_method=by_method, seconds=shared * seconds + own_seconds)


def _own_cost(entry: Method, scene: Scene, layers: Sequence[LayerProposal], seconds: float) -> tuple[int, float]:
    """(passes, seconds) of one class beside what all methods share. seconds: of a whole forward."""
    if entry.passes is None:
        return 0, 0.0
    passes = [entry.passes(scene, layer) for layer in layers]
    paces = [seconds if entry.pace is None else entry.pace(scene, layer) for layer in layers]
    return sum(passes), sum(count * pace for count, pace in zip(passes, paces, strict=True))
