"""Heat maps for a batch of prepared pictures: methods x layers from one forward and one backward, then arithmetic.

This is the engine beneath `cam/explain.py`; benchmarks and loops over many pictures call it directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from inspector.cam.engine.projection import reduce
from inspector.cam.engine.rounding import rounding_share
from inspector.cam.engine.scene import Scene, open_scene
from inspector.cam.engine.tensors import centres_of, enlarge, normalise, peak, shape_of, without_padding
from inspector.cam.layers.proposals import find_layer, propose_layers
from inspector.cam.method import Method, Weighed
from inspector.cam.methods import METHODS, method_named
from inspector.cam.report import PLAIN, LayerProposal, Maps, Options
from inspector.cam.targets.readings import Reading, class_scores
from inspector.errors import ExplainError, UsageError
from inspector.progress import Progress, silent

Targets = int | Sequence[int] | Tensor | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Axes:
    """Methods x layers x classes.

    layers: names or proposals, None for the proposed ones, at most `most_layers` of them. classes: each one for all
    pictures, one for each picture, or None for each picture's best class.
    """

    layers: Sequence[LayerProposal | str] | None = None
    methods: Sequence[str] = ("grad-cam",)
    classes: Sequence[Targets] = (None,)
    most_layers: int | None = None

    def found(self, model: nn.Module, shape: tuple[int, int, int]) -> tuple[LayerProposal, ...]:
        """The layers for an input of (C, H, W); () where no method looks at one."""
        if not any(method_named(name, METHODS).by_layer for name in self.methods):
            return ()
        return choose_layers(model, self.layers, shape, self.most_layers)


def heat_maps(
    model: nn.Module,
    batch: Tensor,
    *,
    layer: LayerProposal | str | None = None,
    targets: Targets = None,
    method: str = "grad-cam",
    options: Options = PLAIN,
    read: Reading = class_scores,
    progress: Progress = silent,
) -> Maps:
    """One map for each picture.

    batch: (N, C, H, W), prepared. layer: a name, a proposal (which saves tracing), None for the suggested one.
    targets: one class for all, one for each, None for each picture's best class. options: its smoothing and its seed;
    `MapSpec.make` fuses and augments too. read: what is scored, where that is not a class (`targets/readings.py`).
    Raises NoSuchLayer, LayerNotSpatial, TargetOutOfRange, ExplainError; UsageError for an unknown method or a batch
    that is none. The model is left as it was.
    """
    axes = Axes(layers=None if layer is None else [layer], methods=[method], classes=[targets], most_layers=1)
    (((cell,),),) = heat_grid(model, batch, axes, options=options, read=read, progress=progress)
    assert isinstance(cell, Maps)
    return cell


def heat_grid(
    model: nn.Module,
    batch: Tensor,
    axes: Axes,
    *,
    options: Options = PLAIN,
    read: Reading = class_scores,
    progress: Progress = silent,
    lenient: bool = False,
) -> tuple[tuple[tuple[Maps | ExplainError, ...], ...], ...]:
    """[class][layer][method]: a map for each picture by each method at each layer for each class.

    One forward, and for each class one backward for each score that the methods differentiate (mostly one); methods
    with passes of their own say so. lenient: where a method has no map at a layer of this model, why stands in its
    place; otherwise that is raised. Otherwise as `heat_maps`.
    """
    entries = [method_named(name, METHODS) for name in axes.methods]
    if batch.dim() != 4 or batch.shape[0] == 0:
        raise UsageError(f"A batch (N, C, H, W) is needed, not {tuple(batch.shape)}.")
    layers, classes = axes.found(model, shape_of(batch)), axes.classes
    with open_scene(
        model,
        batch,
        layers,
        classes[0],
        read=read,
        progress=progress,
        seed=options.seed,
        aligned=options.aligned,
    ) as scene:
        # All classes first: a wrong one is said before the work.
        scenes = [scene] if len(classes) == 1 else [scene.towards(targets) for targets in classes]
        if len(classes) == 1:
            scene.expect([entry.objective for entry in entries if entry.arithmetic and entry.gradient])
        return tuple(_rows(one, entries, layers, options=options, lenient=lenient) for one in scenes)


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


def of_input(shape: tuple[int, int, int]) -> LayerProposal:
    """The picture itself, (C, H, W), as the place of a map, for methods that look at no layer."""
    channels, height, width = shape
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
    scene: Scene, entries: Sequence[Method], layers: Sequence[LayerProposal], *, options: Options, lenient: bool
) -> tuple[tuple[Maps | ExplainError, ...], ...]:
    def cell(layer: LayerProposal, entry: Method) -> Maps | ExplainError:
        try:
            return maps_of(scene, layer, entry, options=options)
        except ExplainError as error:
            if not lenient:
                raise
            return error

    # What belongs to the model and not to a layer is made once and stands in every row.
    picture = of_input(shape_of(scene.batch))
    whole = {entry.id: cell(picture, entry) for entry in entries if not entry.by_layer}
    return tuple(
        tuple(whole[entry.id] if entry.id in whole else cell(layer, entry) for entry in entries)
        # A network without any map still has its pictures.
        for layer in layers or (picture,)
    )


def maps_of(scene: Scene, layer: LayerProposal, method: Method, *, options: Options = PLAIN) -> Maps:
    """One method at one layer of a scene. options: its smoothing, and how its cells are spread."""
    eigen = options.eigen_smooth
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
        heat=enlarge(
            normalise(raw),
            (scene.batch.shape[2], scene.batch.shape[3]),
            centres_of(layer, raw, aligned=options.aligned),
        ),
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
