"""The map that is measured, made again: of a changed picture, by a model that forgot, by another method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from inspector.cam.combine import FUSIONS
from inspector.cam.describe import PLAIN
from inspector.cam.maps import choose_layers, of_input
from inspector.cam.methods import method_named
from inspector.cam.readings import Reading, class_scores
from inspector.cam.report import LayerProposal, Maps, Options
from inspector.cam.spec import MapSpec
from inspector.cam.tensors import normalise
from inspector.cam.trust.baselines import random_map
from inspector.errors import UsageError
from inspector.progress import Progress, silent


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker(MapSpec):
    """How the map that is measured is made. target: column of the scores, None for the best."""

    target: int | None = None
    read: Reading = class_scores

    def __call__(self, model: nn.Module, picture: Tensor, progress: Progress = silent) -> Maps:
        """picture: (1, C, H, W), prepared. Raises as `heat_maps` does."""
        return self.make(model, picture, targets=self.target, read=self.read, progress=progress).maps

    def by(self, method: str) -> Maker:
        """The same by another method that looks at layers."""
        return replace(self, method=method)

    def of_noise(self, size: tuple[int, int]) -> Tensor:
        """(H, W) in [0, 1]: noise on the grids of these layers, enlarged and fused as the map is."""
        noises = [random_map(size, layer.grid, self.options.seed + n) for n, layer in enumerate(self.layers)]
        if not self.options.fusion:
            return noises[0]
        return normalise(FUSIONS[self.options.fusion](torch.stack(noises)[:, None]))[0]


def maker(
    model: nn.Module,
    picture: Tensor,
    *,
    method: str,
    layer: LayerProposal | str | None = None,
    layers: Sequence[LayerProposal | str] = (),
    target: int | None = None,
    options: Options = PLAIN,
    read: Reading = class_scores,
) -> Maker:
    """layer: None for the suggested one. layers: that are fused, () for all proposed ones.

    Raises NoSuchLayer, LayerNotSpatial; UsageError for options that mean nothing together.
    """
    if picture.dim() != 4 or picture.shape[0] != 1:
        raise UsageError(f"One picture (1, C, H, W) is measured, not {tuple(picture.shape)}.")
    entry = method_named(method)
    if options.fusion and (options.fusion not in FUSIONS or not entry.by_layer):
        raise UsageError(f"Maps of {entry.title} are not fused by {options.fusion!r}.")
    if options.fusion:
        wanted: Sequence[LayerProposal | str] | None = tuple(layers) or None
    else:
        wanted = None if layer is None or not _path(layer) else [layer]
    shape = (picture.shape[1], picture.shape[2], picture.shape[3])
    if entry.by_layer:
        chosen = choose_layers(model, wanted, shape, None if options.fusion else 1)
    else:
        chosen = (of_input(picture),)
    return Maker(method=method, layers=chosen, target=target, options=options, read=read)


def _path(layer: LayerProposal | str) -> str:
    return layer if isinstance(layer, str) else layer.path
