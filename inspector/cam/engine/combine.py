"""Several maps of one picture as one: over layers, and over changed copies of the picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from inspector.cam.engine.maps import Targets, choose_layers, heat_maps
from inspector.cam.engine.tensors import centres_of, enlarge, normalise, shape_of
from inspector.cam.layers.layouts import layer_name
from inspector.cam.report import PLAIN, Centres, LayerProposal, Maps, Options
from inspector.cam.targets.readings import Reading, class_scores, mirrored
from inspector.errors import UsageError
from inspector.progress import Progress, silent

# How shallow layers are lifted before they are joined (LayerCAM, Jiang 2021, section III-D).
_LIFT = 2.0

FUSIONS: dict[str, Callable[[Tensor], Tensor]] = {
    # (L, N, H, W) in [0, 1] -> (N, H, W). LayerCAM's own takes the maximum of tanh(2 M).
    "mean": lambda heats: heats.mean(dim=0),
    "maximum": lambda heats: torch.tanh(_LIFT * heats).amax(dim=0),
    "product": lambda heats: heats.prod(dim=0),
}

# Brightness of the copies, each also mirrored: six passes, as pytorch-grad-cam's test-time augmentation has them.
_BRIGHTNESS = (0.9, 1.0, 1.1)
# Plain maps in an augmented one: those of the copies, and the picture's own.
AUGMENTED_MAPS = 2 * len(_BRIGHTNESS) + 1


def fuse(maps: Sequence[Maps], how: str = "mean") -> Tensor:
    """One heat (N, H, W) in [0, 1] of the maps of several layers, its maximum 1 unless all are 0.

    how: "mean", "maximum" (of tanh(2 M), as LayerCAM joins layers) or "product" (what all layers agree on).
    Raises UsageError for another way or no map.
    """
    if how not in FUSIONS or not maps:
        raise UsageError(f"Maps are fused by {', '.join(FUSIONS)}, at least one of them.")
    return normalise(FUSIONS[how](torch.stack([m.heat for m in maps])))


def augmented_maps(
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
    """The mean of the raw maps of six copies of each picture: three brightnesses, each also mirrored left to right.

    Arguments as `heat_maps`. Class scores and targets are those of the picture itself.
    """
    # Found once for all copies.
    if layer is None or isinstance(layer, str):
        (layer,) = choose_layers(model, None if layer is None else [layer], shape_of(batch), 1)
    make = partial(heat_maps, model, layer=layer, method=method, options=options, progress=progress)
    plain = make(batch, targets=targets, read=read)
    raws: list[Tensor] = []
    for factor in _BRIGHTNESS:
        for turned in (False, True):
            progress(len(raws), 2 * len(_BRIGHTNESS), "changing the picture")
            copies = batch * factor
            if turned:
                of_mirrored = make(copies.flip(3), targets=plain.targets, read=mirrored(read, batch.shape[3]))
                raws.append(of_mirrored.raw.flip(2))
            else:
                raws.append(make(copies, targets=plain.targets, read=read).raw)
    raw = torch.stack(raws).mean(dim=0)
    if plain.layer.centres is not None:
        layer = replace(plain.layer, centres=_mirrored_half(plain.layer.centres, plain.layer.grid[1], batch.shape[3]))
    heat = enlarge(normalise(raw), (batch.shape[2], batch.shape[3]), centres_of(layer, raw, aligned=options.aligned))
    return replace(plain, raw=raw, heat=heat, layer=layer)


def _mirrored_half(centres: Centres, columns: int, width: int) -> Centres:
    """Of a mean over cells of which half were turned round: in the middle between a column and its mirror image, so
    that the columns lie evenly about the middle of the picture. columns: of the grid. width: of the input in pixels."""
    (down, _), (step_down, step) = centres.first, centres.step
    return Centres(first=(down, (width - step * (columns - 1)) / 2), step=(step_down, step))


def joined(parts: Sequence[Maps], how: str) -> Maps:
    """Several layers' maps as one, whose raw map is its heat. how: as `fuse`."""
    heat = fuse(parts, how)
    first = parts[0]
    size = (heat.shape[1], heat.shape[2])
    place = LayerProposal(
        path=" + ".join(layer_name(part.layer) for part in parts),
        kind=how,
        shape=size,
        layout="NCHW",
        prefix_tokens=0,
        grid=size,
        rank=0,
        reason=f"The {how} of the maps of {len(parts)} layers.",
    )
    peaks = {
        name: torch.stack([getattr(part, name) for part in parts]).amax(dim=0)
        for name in ("gradient_peak", "prefix_peak", "activation_peak", "rounding_share", "weight_spread")
    }
    return Maps(
        heat=heat,
        raw=heat,
        logits=first.logits,
        targets=first.targets,
        layer=place,
        method=first.method,
        precision=first.precision,
        **peaks,
    )
