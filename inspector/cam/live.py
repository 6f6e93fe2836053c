"""One forward of one picture, kept: methods, layers and classes are then arithmetic, and a further class one backward.

For faces where somebody switches between them. The model itself is given back at once; what stays is the graph of this
one forward, from the earliest kept layer on, so the caller keeps few of these. What a classifier's classes are, the
classes of a segmentation's own pixels and the boxes of a detector are here: the columns that can be explained.
"""

from __future__ import annotations

import copy
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from inspector.cam.columns import Box, Kind
from inspector.cam.engine.capture import borrowed, capture, like_the_model, unwrap
from inspector.cam.engine.maps import maps_of
from inspector.cam.engine.scene import Scene, open_scene
from inspector.cam.engine.tensors import without_padding
from inspector.cam.method import FORWARD_AND_BACKWARD
from inspector.cam.methods import METHODS, method_named
from inspector.cam.report import Crop, LayerProposal, Made, Maps, Options
from inspector.cam.spec import MapSpec
from inspector.cam.targets.questions import (
    A_CLASS,
    Asked,
    OfBox,
    OfPixels,
    Question,
    asked_of_box,
    asked_of_pixels,
    check_found_box,
)
from inspector.cam.targets.readings import (
    BoxScore,
    PixelScores,
    Reading,
    class_scores,
    detections,
    given_classes,
    logits_of,
    pixel_scores,
)
from inspector.errors import ExplainError
from inspector.progress import Progress, silent

# Of a detector: the surest ones.
MOST_BOXES = 12
# Gradients of all layers are kept for so many classes.
_CLASSES_KEPT = 4


class _Answer:
    """A reading for any answer of a vision model, which remembers what it saw."""

    def __init__(self) -> None:
        self.kind = Kind.CLASSES
        # In the graph: what a column is of is read from it once more, as the command reads it.
        self.whole: object = None
        self.shares: tuple[float, ...] = ()
        self.boxes: tuple[Box, ...] = ()

    def __call__(self, answer: object, pictures: Sequence[int]) -> Tensor:
        if isinstance(answer, list):
            return self._scores_of_boxes(answer)
        try:
            return logits_of(answer)
        except ExplainError as error:
            try:
                scores = pixel_scores(answer)
            except ExplainError:
                raise error from None
        return self._scores_of_pixels(scores)

    def _scores_of_pixels(self, scores: Tensor) -> Tensor:
        """(1, classes): the mean score of each class over the pixels that are given to it; 0 without any."""
        self.kind, self.whole = Kind.PIXELS, scores
        classes = torch.arange(scores.shape[1], device=scores.device)[None, :, None, None]
        given = given_classes(scores.detach())[:, None] == classes
        counts = given.sum(dim=(2, 3))
        self.shares = tuple((counts[0].double() / (scores.shape[2] * scores.shape[3])).tolist())
        return (scores * given).sum(dim=(2, 3)) / counts.clamp_min(1)

    def _scores_of_boxes(self, answer: list[object]) -> Tensor:
        """(1, boxes): how sure the detector is of each, the surest first."""
        self.kind = Kind.BOXES
        (found,) = detections(answer)
        if not len(found["scores"]):
            raise ExplainError("The detector finds nothing in this picture.", hint="Try another picture.")
        self.whole = [found]
        # Equal ones as `OfBox` counts them.
        order = found["scores"].detach().argsort(descending=True, stable=True)[:MOST_BOXES]
        corners, labels, scores = (found[name][order].detach().tolist() for name in ("boxes", "labels", "scores"))
        self.boxes = tuple(
            Box(corners=(c[0], c[1], c[2], c[3]), label=int(label), score=float(score))
            for c, label, score in zip(corners, labels, scores, strict=True)
        )
        return found["scores"][order][None]


class Look:
    """Made by `look`.

    model: what was asked, given back. layers: those that were kept. kind: what the columns are. logits: (columns,) as
    the model gave them. shares: for pixels, each class's share of the picture. boxes: for boxes. seconds: of the
    forward.
    """

    def __init__(self, scene: Scene, answer: _Answer, seconds: float) -> None:
        self.model: nn.Module = scene.model
        self.batch: Tensor = scene.batch
        self.layers = scene.layers
        self.kind = answer.kind
        self.shares = answer.shares
        self.boxes = answer.boxes
        self.seconds = seconds
        self.logits: Tensor = scene.logits.detach()[0].cpu()
        self._answer = answer
        self._scene = scene
        self._by_class: OrderedDict[int, Scene] = OrderedDict()
        self._forward_seconds: float | None = None
        self._paces: dict[tuple[str, LayerProposal], float] = {}

    @property
    def best(self) -> int:
        """The column to begin with: the highest class, the class with most pixels beside the background, the surest
        box."""
        if self.kind is Kind.BOXES:
            return 0
        if self.kind is Kind.PIXELS:
            # Class 0 of a segmentation is its background, by all data sets that torchvision's weights are from.
            things = self.shares[1:]
            most = max(range(len(things)), key=things.__getitem__, default=0)
            return most + 1 if things and things[most] > 0 else 0
        return int(torch.nan_to_num(self.logits, nan=-torch.inf).argmax())

    def map(self, method: str, layer: LayerProposal, target: int, *, eigen: bool = False) -> Maps:
        """One map of an arithmetic method: no model call; the first of a class costs one backward.

        layer: one of `layers`, its layout and grid may be changed. Raises ExplainError, LayerNotSpatial.
        """
        entry = method_named(method, METHODS)
        if entry.arithmetic is None:
            raise ExplainError(f"{entry.title} runs the model again.", hint="Ask for it with `make`.")
        self._check(target)
        with torch.inference_mode(False), torch.enable_grad():
            return maps_of(self._towards(target), layer, entry, options=Options(eigen_smooth=eigen))

    def channels(self, layer: LayerProposal, target: int, most: int = 24) -> tuple[Channel, ...]:
        """The layer's channels by how much they move the score: mean over places of |gradient x activation|."""
        self._check(target)
        with torch.inference_mode(False), torch.enable_grad():
            scene = self._towards(target)
            activation, gradient = scene.activation(layer)[0], scene.gradient(layer)[0]
        with torch.no_grad():
            product = (activation * gradient).double()
            size = product.abs().mean(dim=(1, 2))
            signed = product.mean(dim=(1, 2))
            order = size.argsort(descending=True, stable=True)[:most].tolist()
            shown = without_padding(activation[order].float(), self._scene.shown).cpu()
        return tuple(
            Channel(index=k, contribution=float(size[k]), signed=float(signed[k]), activation=shown[n])
            for n, k in enumerate(order)
        )

    def passes(self, method: str, layer: LayerProposal) -> int:
        """How many forward passes of one picture a method takes that runs the model again; 0 for arithmetic."""
        entry = method_named(method, METHODS)
        return 0 if entry.passes is None else entry.passes(self._scene, layer)

    def cost(self, spec: MapSpec) -> tuple[int, float]:
        """(forward passes of one picture, seconds as tried out) of a map; (0, 0.0) for arithmetic.

        Raises ExplainError where the method is not for this model.
        """
        if spec.is_arithmetic:
            return 0, 0.0
        passes, seconds = 0, 0.0
        for layer in spec.layers:
            own = self.passes(spec.method, layer)
            passes += spec.maps_of_a_layer * (own or FORWARD_AND_BACKWARD)
            one = self.seconds_of(spec.method, layer) if own else FORWARD_AND_BACKWARD * self.forward_seconds
            seconds += spec.maps_of_a_layer * one
        return passes, seconds

    def seconds_of_one(self, spec: MapSpec) -> float:
        """What a map of another such picture takes from its forward on, whichever method."""
        return max(self.cost(spec)[1], FORWARD_AND_BACKWARD * self.forward_seconds)

    def seconds_of(self, method: str, layer: LayerProposal) -> float:
        """What these passes take, by one that is tried out now."""
        entry, passes = method_named(method, METHODS), self.passes(method, layer)
        if entry.pace is None or not passes:
            return passes * self.forward_seconds
        key = (entry.id, layer)
        if key not in self._paces:
            read, column = self.reading(self.best)
            with open_scene(self.model, self.batch, [layer], column, read=read) as scene:
                self._paces[key] = entry.pace(scene, layer)
        return passes * self._paces[key]

    @property
    def forward_seconds(self) -> float:
        """What one forward takes now: a second one is timed, since the first of a process warms up."""
        if self._forward_seconds is None:
            with capture(self.model) as lent, torch.no_grad():
                batch = like_the_model(self.batch, lent.model)
                start = time.perf_counter()
                lent.model(batch)
                self._forward_seconds = time.perf_counter() - start
        return self._forward_seconds

    def make(self, spec: MapSpec, target: int, *, progress: Progress = silent) -> Made:
        """One map of any method by running a copy of the model, so that nobody waits for it meanwhile.

        spec: its layers are of this picture's size.
        """
        read, column = self.reading(target)
        return spec.make(self.twin(), self.batch, targets=column, read=read, progress=progress)

    def reading(self, target: int) -> tuple[Reading, int]:
        """(how answers to changed pictures are read, the column) for one of the columns here."""
        self._check(target)
        read = self._reading(target)
        return read, 0 if self.kind is Kind.BOXES else target

    def question(self, target: int) -> Question:
        """What asks `explain` for the same column."""
        if self.kind is Kind.PIXELS:
            return OfPixels(target)
        return OfBox(rank=target + 1) if self.kind is Kind.BOXES else A_CLASS

    def asked(self, target: int, crop: Crop) -> Asked:
        """The same as it stands for this picture. crop: the rectangle of the picture that it shows."""
        read = self._reading(target)
        if isinstance(read, PixelScores):
            return asked_of_pixels(target, read, 1)
        if isinstance(read, BoxScore):
            size = (self.batch.shape[2], self.batch.shape[3])
            return asked_of_box(OfBox(rank=target + 1), read, [crop], size)
        return A_CLASS.ask(self.model, self.batch, [crop])

    def _reading(self, target: int) -> Reading:
        if self.kind is Kind.PIXELS:
            assert isinstance(self._answer.whole, Tensor)
            return PixelScores(given_classes(self._answer.whole.detach()) == target)
        if self.kind is Kind.BOXES:
            box = self.boxes[target]
            return BoxScore(torch.tensor([box.corners]), [box.label])
        return class_scores

    def twin(self) -> nn.Module:
        """A copy of the model for work beside the page."""
        with borrowed(self.model):
            return copy.deepcopy(self.model)

    def _check(self, target: int) -> None:
        if self.kind is Kind.BOXES:
            check_found_box(self.boxes[target].corners, target + 1)
        if self.kind is Kind.PIXELS and not self.shares[target] > 0:
            raise ExplainError(
                f"The model gives no pixel of the picture to class {target}.",
                hint="Choose a class that it sees there.",
            )

    def _towards(self, target: int) -> Scene:
        if target not in self._by_class:
            if self.kind is Kind.CLASSES:
                self._by_class[target] = self._scene.towards(target)
            else:
                read, column = self.reading(target)
                self._by_class[target] = self._scene.rescored(read(self._answer.whole, [0]), column)
        self._by_class.move_to_end(target)
        while len(self._by_class) > _CLASSES_KEPT:
            self._by_class.popitem(last=False)
        return self._by_class[target]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Channel:
    """One channel of a layer. contribution: mean over places of |gradient x activation|. signed: the same with its
    sign. activation: (h, w), as the layer put it out."""

    index: int
    contribution: float
    signed: float
    activation: Tensor


def look(model: nn.Module, picture: Tensor, layers: Sequence[LayerProposal]) -> Look:
    """Run one prepared picture (1, C, H, W) once and keep what these layers put out.

    Raises ExplainError where the answer holds nothing that can be explained, NoSuchLayer. The model is left as it was.
    """
    answer = _Answer()
    start = time.perf_counter()
    with open_scene(unwrap(model), picture, layers, 0, read=answer) as scene:
        return Look(scene, answer, time.perf_counter() - start)
