"""The map that is measured, made again: of a changed picture, by a model that forgot, by another method."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from inspector.cam.engine.combine import FUSIONS
from inspector.cam.engine.tensors import normalise
from inspector.cam.report import Maps
from inspector.cam.spec import MapSpec
from inspector.cam.targets.readings import Reading, class_scores
from inspector.cam.trust.baselines import halved, random_map
from inspector.progress import Progress, silent

# Between the seeds of two draws: more than layers that are fused.
_SEEDS = 100_003


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

    def of_noise(self, size: tuple[int, int], draw: int = 0) -> Tensor:
        """(H, W) in [0, 1]: noise on the grids of these layers, enlarged and fused as the map is.

        draw: number of it. Every other one is smooth: on grids of half the side, since maps are smoother than noise.
        """
        first = self.options.seed + draw * _SEEDS
        grids = [layer.grid if draw % 2 == 0 else halved(layer.grid) for layer in self.layers]
        noises = [random_map(size, grid, first + n) for n, grid in enumerate(grids)]
        if not self.options.fusion:
            return noises[0]
        return normalise(FUSIONS[self.options.fusion](torch.stack(noises)[:, None]))[0]
