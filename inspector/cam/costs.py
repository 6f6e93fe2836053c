"""What maps will cost before they are made, in forward passes of one picture and in seconds of this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence

from PIL import Image
from torch import nn

from inspector.cam.describe import Setting
from inspector.cam.engine.combine import AUGMENTED_MAPS
from inspector.cam.engine.maps import Axes, of_input
from inspector.cam.engine.scene import Scene, open_scene
from inspector.cam.engine.tensors import shape_of
from inspector.cam.inputs.preprocess import prepare
from inspector.cam.method import BACKWARD, Method
from inspector.cam.methods import method_named
from inspector.cam.report import PLAIN, Estimate, LayerProposal, Options


def estimate(
    model: nn.Module, picture: Image.Image, axes: Axes, setting: Setting, *, options: Options = PLAIN
) -> Estimate:
    """What such maps will cost; runs the model once to know how long that takes, and once to find the layers.

    Arguments as `explain_grid`.
    """
    entries = [method_named(name) for name in axes.methods]
    batch, crop = prepare(picture, setting.preprocessing)
    read = setting.question.ask(model, batch, [crop]).read
    layers, classes = axes.found(model, shape_of(batch)), len(axes.classes)
    start = time.perf_counter()
    with open_scene(model, batch, layers, 0, read=read) as scene:
        seconds = time.perf_counter() - start
        places = {True: layers, False: (of_input(shape_of(batch)),)}
        costs = [_own_cost(entry, scene, places[entry.by_layer], seconds) for entry in entries]
    by_method = tuple((entry.id, classes * passes) for entry, (passes, _) in zip(entries, costs, strict=True))
    own_seconds = classes * sum(one for _, one in costs)
    shared = 1 + BACKWARD * classes * len({e.objective for e in entries if e.arithmetic and e.gradient})
    if options.augmented:
        maps = max(1, len(layers)) * classes
        shared += AUGMENTED_MAPS * maps * sum(1 + BACKWARD * (e.arithmetic is not None) for e in entries)
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
