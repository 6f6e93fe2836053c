"""Heat maps for a batch of prepared pictures: methods x layers from one forward and one backward, then arithmetic.

This is the engine beneath `explain.py`; benchmarks and loops over many pictures call it directly.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from inspector.cam.layers import find_layer, propose_layers
from inspector.cam.method import Method, Weighed
from inspector.cam.methods import METHODS, method_named
from inspector.cam.projection import reduce
from inspector.cam.readings import Reading, class_scores
from inspector.cam.report import LayerProposal, Maps
from inspector.cam.rounding import rounding_share
from inspector.cam.scene import Scene, open_scene
from inspector.cam.tensors import enlarge, normalise, peak, without_padding
from inspector.errors import ExplainError, UsageError
from inspector.progress import Progress, silent


def heat_maps(
    model: nn.Module,
    batch: Tensor,
    *,
    layer: LayerProposal | str | None = None,
    targets: int | Sequence[int] | Tensor | None = None,
    method: str = "grad-cam",
    eigen_smooth: bool = False,
    read: Reading = class_scores,
    progress: Progress = silent,
    seed: int = 0,
) -> Maps:
    """One map for each picture.

    batch: (N, C, H, W), prepared. layer: a name, a proposal (which saves tracing), None for the suggested one.
    targets: one class for all, one for each, None for each picture's best class. eigen_smooth: the strongest pattern
    over a layer's channels instead of their sum. read: what is scored, where that is not a class (`readings.py`).
    seed: for methods that draw random numbers.
    Raises NoSuchLayer, LayerNotSpatial, TargetOutOfRange, ExplainError; UsageError for an unknown method or a batch
    that is none. The model is left as it was.
    """
    layers = None if layer is None else [layer]
    found = heat_grid(
        model,
        batch,
        layers=layers,
        targets=targets,
        methods=[method],
        eigen_smooth=eigen_smooth,
        read=read,
        progress=progress,
        seed=seed,
        most_layers=1,
    )
    return found[0][0]


def heat_grid(
    model: nn.Module,
    batch: Tensor,
    *,
    layers: Sequence[LayerProposal | str] | None = None,
    targets: int | Sequence[int] | Tensor | None = None,
    methods: Sequence[str] = ("grad-cam",),
    eigen_smooth: bool = False,
    read: Reading = class_scores,
    progress: Progress = silent,
    seed: int = 0,
    most_layers: int | None = None,
) -> tuple[tuple[Maps, ...], ...]:
    """[layer][method]: a map for each picture by each method at each layer.

    One forward, and one backward for each score that the methods differentiate (mostly one); methods with passes of
    their own say so. layers: None for the proposed ones, at most `most_layers` of them. Otherwise as `heat_maps`.
    """
    (only,) = heat_grids(
        model,
        batch,
        layers=layers,
        classes=[targets],
        methods=methods,
        eigen_smooth=eigen_smooth,
        read=read,
        progress=progress,
        seed=seed,
        most_layers=most_layers,
    )
    return tuple(tuple(cell for cell in row if isinstance(cell, Maps)) for row in only)


def heat_grids(
    model: nn.Module,
    batch: Tensor,
    *,
    classes: Sequence[int | Sequence[int] | Tensor | None],
    layers: Sequence[LayerProposal | str] | None = None,
    methods: Sequence[str] = ("grad-cam",),
    eigen_smooth: bool = False,
    read: Reading = class_scores,
    progress: Progress = silent,
    seed: int = 0,
    most_layers: int | None = None,
    lenient: bool = False,
) -> tuple[tuple[tuple[Maps | ExplainError, ...], ...], ...]:
    """[class][layer][method]: the same for several classes, each as `targets` there, from the same forward.

    Each further class costs its backward passes alone. lenient: where a method has no map at a layer of this model,
    why stands in its place; otherwise that is raised.
    """
    entries = [method_named(name, METHODS) for name in methods]
    if batch.dim() != 4 or batch.shape[0] == 0:
        raise UsageError(f"A batch (N, C, H, W) is needed, not {tuple(batch.shape)}.")
    of_layers = any(entry.by_layer for entry in entries)
    shape = (batch.shape[1], batch.shape[2], batch.shape[3])
    chosen = choose_layers(model, layers, shape, most_layers) if of_layers else ()
    with open_scene(model, batch, chosen, classes[0], read=read, progress=progress, seed=seed) as scene:
        # All classes first: a wrong one is said before the work.
        scenes = [scene] if len(classes) == 1 else [scene.towards(targets) for targets in classes]
        if len(classes) == 1:
            scene.expect([entry.objective for entry in entries if entry.arithmetic and entry.gradient])
        return tuple(_rows(one, entries, chosen, eigen=eigen_smooth, lenient=lenient) for one in scenes)


def choose_layers(
    model: nn.Module,
    layers: Sequence[LayerProposal | str] | None,
    input_shape: tuple[int, int, int],
    most: int | None = None,
) -> tuple[LayerProposal, ...]:
    """The layers that are meant, for an input of (C, H, W)."""
    if layers is None:
        return propose_layers(model, input_shape)[:most]
    return tuple(
        layer if isinstance(layer, LayerProposal) else find_layer(model, layer, input_shape) for layer in layers
    )


def of_input(batch: Tensor) -> LayerProposal:
    """The picture itself as the place of a map, for methods that look at no layer."""
    _, channels, height, width = batch.shape
    return LayerProposal(
        path="",
        kind="input",
        shape=(channels, height, width),
        layout="NCHW",
        prefix_tokens=0,
        grid=(height, width),
        rank=0,
        reason="The picture itself: this method looks at no layer.",
    )


def _rows(
    scene: Scene, entries: Sequence[Method], layers: Sequence[LayerProposal], *, eigen: bool, lenient: bool
) -> tuple[tuple[Maps | ExplainError, ...], ...]:
    def cell(layer: LayerProposal, entry: Method) -> Maps | ExplainError:
        try:
            return maps_of(scene, layer, entry, eigen=eigen)
        except ExplainError as error:
            if not lenient:
                raise
            return error

    # What belongs to the model and not to a layer is made once and stands in every row.
    picture = of_input(scene.batch)
    whole = {entry.id: cell(picture, entry) for entry in entries if not entry.by_layer}
    return tuple(
        tuple(whole[entry.id] if entry.id in whole else cell(layer, entry) for entry in entries)
        # A network without any map still has its pictures.
        for layer in layers or (picture,)
    )


def maps_of(scene: Scene, layer: LayerProposal, method: Method, *, eigen: bool) -> Maps:
    """One method at one layer of a scene."""
    activation = scene.activation(layer) if layer.path else scene.batch.detach()
    gradient = activation
    if method.arithmetic is not None and method.gradient:
        gradient = scene.gradient(layer, method.objective)
        gradient_peak = peak(gradient)
        prefix_peak = torch.zeros_like(gradient_peak)
        if layer.prefix_tokens:
            prefix_peak = peak(scene.prefix_gradient(layer, method.objective))
    else:
        gradient_peak = prefix_peak = torch.full((scene.batch.shape[0],), torch.nan)
    spread = torch.full((scene.batch.shape[0],), torch.nan)
    if method.arithmetic is None:
        assert method.compute is not None
        computed = method.compute(scene, layer)
        raw = computed.parts if isinstance(computed, Weighed) else computed
        spread = computed.spread if isinstance(computed, Weighed) else spread
    else:
        with torch.no_grad():
            raw = method.arithmetic(activation, gradient)
    raw = reduce(raw.detach(), eigen=method.eigen or (eigen and method.by_layer))
    share = torch.full((scene.batch.shape[0],), torch.nan)
    summed = method.made_of or method
    if summed.arithmetic is not None and summed.gradient and not (summed.eigen or eigen):
        with torch.no_grad():
            added = raw
            if method.made_of is not None:
                gradient = scene.gradient(layer, summed.objective)
                added = summed.arithmetic(activation, gradient).sum(dim=1)
            share = rounding_share(summed, activation, gradient, added, stored=scene.tokens(layer).dtype)
    raw = raw.cpu()
    if layer.path and raw.shape[1:] == activation.shape[2:]:
        raw = without_padding(raw, scene.shown)
    return Maps(
        heat=enlarge(normalise(raw), (scene.batch.shape[2], scene.batch.shape[3])),
        raw=raw,
        logits=scene.logits.detach().cpu(),
        targets=scene.targets.cpu(),
        layer=layer,
        method=method.id,
        gradient_peak=gradient_peak,
        prefix_peak=prefix_peak,
        activation_peak=peak(activation),
        rounding_share=share,
        weight_spread=spread,
        precision=activation.dtype,
    )
