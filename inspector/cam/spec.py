"""How one map is made, for whoever makes one: of a picture, of a changed one, by a model that forgot, behind a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from torch import Tensor, nn

from inspector.cam.engine.combine import AUGMENTED_MAPS, FUSIONS, augmented_maps, joined
from inspector.cam.engine.maps import Targets, choose_layers, heat_maps, of_input
from inspector.cam.layers.layouts import layer_text
from inspector.cam.methods import METHODS, method_named
from inspector.cam.report import PLAIN, Explanation, LayerProposal, Made, Maps, Options
from inspector.cam.targets.readings import Reading, class_scores
from inspector.errors import UsageError
from inspector.progress import Progress, silent


def unfused() -> UsageError:
    """What layers for a fusion without a fusion are answered with."""
    return UsageError("Several layers make one map by a fusion.", hint="Name it, or ask for a grid.")


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRequest:
    """How a map is to be made, before its layers are found.

    method: its id. layers: names or proposals: those that `options.fusion` makes one map of, else the one; () for the
    proposed ones, else the suggested one.
    Raises UsageError for what means nothing together.
    """

    method: str = "grad-cam"
    layers: tuple[LayerProposal | str, ...] = ()
    options: Options = PLAIN

    def __post_init__(self) -> None:
        fusion = self.options.fusion
        if fusion and fusion not in FUSIONS:
            raise UsageError(f"There is no fusion {fusion!r}.", hint=f"Fusions: {', '.join(FUSIONS)}.")
        if fusion and not method_named(self.method).by_layer:
            raise UsageError(f"{method_named(self.method).title} looks at no layer, so there is nothing to fuse.")
        if len(self.layers) > 1 and not fusion:
            raise unfused()

    @property
    def by_name(self) -> MapRequest:
        """The same for another size of input: a proposal is of one, there its layer is traced again."""
        names = (layer_text(layer) if isinstance(layer, LayerProposal) else layer for layer in self.layers)
        return replace(self, layers=tuple(names))

    def at(self, model: nn.Module, shape: tuple[int, int, int]) -> MapSpec:
        """For an input of (C, H, W). Raises NoSuchLayer, LayerNotSpatial, UsageError for an unknown method."""
        places: tuple[LayerProposal, ...] = (of_input(shape),)
        if method_named(self.method).by_layer:
            places = choose_layers(model, self.layers or None, shape, None if self.options.fusion else 1)
        return MapSpec(method=self.method, layers=places, options=self.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapSpec:
    """How a map is made of prepared pictures.

    method: its id. layers: places at the size of these pictures: those that `options.fusion` makes one map of, or the
    one; the picture itself for a method that looks at none.
    """

    method: str
    layers: tuple[LayerProposal, ...]
    options: Options = PLAIN

    @classmethod
    def of(cls, explanation: Explanation) -> Self:
        """How this one was made."""
        return cls(method=explanation.method, layers=explanation.layers, options=explanation.options)

    @property
    def request(self) -> MapRequest:
        """What asks for the same of other pictures, by another model."""
        return MapRequest(method=self.method, layers=self.layers, options=self.options)

    @property
    def layer_texts(self) -> tuple[str, ...]:
        """Its layers as the command line takes them; none for the picture itself."""
        return tuple(layer_text(layer) for layer in self.layers if layer.path)

    @property
    def plain_maps(self) -> int:
        """How many maps of one layer and one picture are in it."""
        return len(self.layers) * self.maps_of_a_layer

    @property
    def maps_of_a_layer(self) -> int:
        """The same at each of its layers."""
        return AUGMENTED_MAPS if self.options.augmented else 1

    @property
    def is_arithmetic(self) -> bool:
        """Whether one forward has all that it needs, with a backward at most."""
        return method_named(self.method, METHODS).arithmetic is not None and not self.options.augmented

    def make(
        self,
        model: nn.Module,
        batch: Tensor,
        *,
        targets: Targets = None,
        read: Reading = class_scores,
        progress: Progress = silent,
    ) -> Made:
        """batch: (N, C, H, W), prepared. Other arguments, and what is raised, as `heat_maps`."""
        one = augmented_maps if self.options.augmented else heat_maps
        parts = [
            one(
                model,
                batch,
                layer=place,
                targets=targets,
                method=self.method,
                options=self.options,
                read=read,
                progress=_part(progress, number, len(self.layers)),
            )
            for number, place in enumerate(self.layers)
        ]
        return self.join(parts)

    def join(self, parts: Sequence[Maps]) -> Made:
        """Maps of its layers as the one that is shown."""
        if not self.options.fusion:
            return Made(maps=parts[0], options=self.options)
        return Made(maps=joined(parts, self.options.fusion), parts=tuple(parts), options=self.options)


def _part(progress: Progress, number: int, count: int) -> Progress:
    """The progress of one of several equal parts."""
    if count == 1:
        return progress

    def report(done: int, total: int | None, note: str) -> None:
        share = min(1.0, done / total) if total else 0.0
        progress(round(1000 * (number + share)), 1000 * count, note)

    return report
