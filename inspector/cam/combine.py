"""Several maps of one picture as one: over layers, and over changed copies of the picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from inspector.cam.layouts import layer_name
from inspector.cam.maps import choose_layers, heat_maps
from inspector.cam.readings import Reading, class_scores, mirrored
from inspector.cam.report import LayerProposal, Maps
from inspector.cam.tensors import enlarge, normalise
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
    targets: int | Sequence[int] | Tensor | None = None,
    method: str = "grad-cam",
    eigen_smooth: bool = False,
    read: Reading = class_scores,
    progress: Progress = silent,
    seed: int = 0,
) -> Maps:
    """The mean of the raw maps of six copies of each picture: three brightnesses, each also mirrored left to right.

    Arguments as `heat_maps`. Class scores and targets are those of the picture itself.
    """
    shape = (batch.shape[1], batch.shape[2], batch.shape[3])
    # Found once for all copies.
    if layer is None or isinstance(layer, str):
        (layer,) = choose_layers(model, None if layer is None else [layer], shape, 1)
    plain = heat_maps(
        model,
        batch,
        layer=layer,
        targets=targets,
        method=method,
        eigen_smooth=eigen_smooth,
        read=read,
        progress=progress,
        seed=seed,
    )
    raws: list[Tensor] = []
    for factor in _BRIGHTNESS:
        for turned in (False, True):
            progress(len(raws), 2 * len(_BRIGHTNESS), "changing the picture")
            copies = batch * factor
            made = heat_maps(
                model,
                copies.flip(3) if turned else copies,
                layer=layer,
                targets=plain.targets,
                method=method,
                eigen_smooth=eigen_smooth,
                read=mirrored(read, batch.shape[3]) if turned else read,
                progress=progress,
                seed=seed,
            ).raw
            raws.append(made.flip(2) if turned else made)
    raw = torch.stack(raws).mean(dim=0)
    return replace(plain, raw=raw, heat=enlarge(normalise(raw), (batch.shape[2], batch.shape[3])))


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
