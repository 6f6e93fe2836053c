"""How one map is made, for whoever makes one: of a picture, of a changed one, by a model that forgot, behind a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from inspector.cam.combine import AUGMENTED_MAPS, augmented_maps, joined
from inspector.cam.describe import PLAIN
from inspector.cam.maps import heat_maps, of_input
from inspector.cam.methods import METHODS, method_named
from inspector.cam.readings import Reading, class_scores
from inspector.cam.report import LayerProposal, Made, Maps, Options
from inspector.progress import Progress, silent


@dataclass(frozen=True, slots=True, kw_only=True)
class MapSpec:
    """How a map is made of prepared pictures.

    method: its id. layers: places at the size of these pictures: those that `options.fusion` makes one map of, or the
    one; () for a method that looks at none.
    """

    method: str = "grad-cam"
    layers: tuple[LayerProposal, ...] = ()
    options: Options = PLAIN

    @property
    def plain_maps(self) -> int:
        """How many maps of one layer and one picture are in it."""
        return max(1, len(self.layers)) * (AUGMENTED_MAPS if self.options.augmented else 1)

    @property
    def is_arithmetic(self) -> bool:
        """Whether one forward has all that it needs, with a backward at most."""
        return method_named(self.method, METHODS).arithmetic is not None and not self.options.augmented

    def make(
        self,
        model: nn.Module,
        batch: Tensor,
        *,
        targets: int | Sequence[int] | Tensor | None = None,
        read: Reading = class_scores,
        progress: Progress = silent,
    ) -> Made:
        """batch: (N, C, H, W), prepared. Other arguments, and what is raised, as `heat_maps`."""
        one = augmented_maps if self.options.augmented else heat_maps
        places = self.layers or (of_input(batch),)
        parts = [
            one(
                model,
                batch,
                layer=place if place.path else of_input(batch),
                targets=targets,
                method=self.method,
                eigen_smooth=self.options.eigen_smooth,
                read=read,
                progress=_part(progress, number, len(places)),
                seed=self.options.seed,
            )
            for number, place in enumerate(places)
        ]
        return self.join(parts)

    def join(self, parts: Sequence[Maps]) -> Made:
        """Maps of its layers as the one that is shown."""
        if not self.options.fusion:
            return Made(maps=parts[0])
        return Made(maps=joined(parts, self.options.fusion), parts=tuple(parts))


def _part(progress: Progress, number: int, count: int) -> Progress:
    """The progress of one of several equal parts."""
    if count == 1:
        return progress

    def report(done: int, total: int | None, note: str) -> None:
        share = min(1.0, done / total) if total else 0.0
        progress(round(1000 * (number + share)), 1000 * count, note)

    return report
