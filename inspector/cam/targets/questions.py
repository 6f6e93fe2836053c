"""What is asked about a picture: a class, the pixels of a class, or a box; and how that becomes scores for a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor, nn

from inspector.cam.engine.capture import capture, like_the_model
from inspector.cam.report import Crop
from inspector.cam.targets.readings import BoxScore, PixelScores, Reading, class_scores, detections, overlaps
from inspector.errors import ExplainError, UsageError

Corners = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question as it stands for one batch.

    read: how answers become scores. columns: which of them is explained in each picture, None for each one's best.
    labels: the class of each picture where there is one column that is no class score, () otherwise.
    names: what is asked of each picture, in words. pixels_of, box: what is asked as the command line takes it.
    places: the boxes, in pixels of the upright pictures; () where none is asked about.
    """

    read: Reading
    columns: tuple[int, ...] | None
    names: tuple[str, ...]
    labels: tuple[int, ...] = ()
    pixels_of: int | None = None
    box: str = ""
    places: tuple[Corners, ...] = ()


class Question(Protocol):
    """of_class: whether a class can be chosen beside it."""

    @property
    def of_class(self) -> bool: ...

    def ask(self, model: nn.Module, batch: Tensor, crops: Sequence[Crop]) -> Asked:
        """For a batch (N, C, H, W) of these rectangles. Raises ExplainError where the model has no such thing."""


@dataclass(frozen=True, slots=True)
class OfClass:
    """The score of a class: of a classifier, one label of several, or one output of a regression."""

    of_class: bool = field(default=True, init=False)

    def ask(self, model: nn.Module, batch: Tensor, crops: Sequence[Crop]) -> Asked:
        """Costs nothing."""
        return Asked(read=class_scores, columns=None, names=("class",) * batch.shape[0])


A_CLASS = OfClass()


@dataclass(frozen=True, slots=True)
class OfPixels:
    """The pixels that a model for semantic segmentation gives to a class; one more forward."""

    index: int
    of_class: bool = field(default=False, init=False)

    def ask(self, model: nn.Module, batch: Tensor, crops: Sequence[Crop]) -> Asked:
        """Raises TargetOutOfRange, ExplainError where a picture has no such pixel."""
        count = batch.shape[0]
        return asked_of_pixels(self.index, PixelScores.of_class(_answer(model, batch), self.index), count)


@dataclass(frozen=True, slots=True)
class OfBox:
    """One box of a detector; one more forward.

    corners: left, top, right, bottom in pixels of the upright picture; None for a box that the detector found.
    label: its class, None for that of the detection that covers it best. rank: which of the found boxes, 1 for the
    surest, where no corners are given.
    """

    corners: Corners | None = None
    label: int | None = None
    rank: int = 1
    of_class: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Raises UsageError for corners that are no box."""
        fault = "" if self.corners is None else fault_of_box(self.corners)
        if fault:
            raise UsageError(f"The box {_written(self.corners or ())} {fault}.", hint=_A_BOX)

    def ask(self, model: nn.Module, batch: Tensor, crops: Sequence[Crop]) -> Asked:
        """Raises ExplainError where nothing was found there, UsageError for a box outside the picture."""
        found = detections(_answer(model, batch))
        size = (batch.shape[2], batch.shape[3])
        boxes, labels = [], []
        for number, (one, crop) in enumerate(zip(found, crops, strict=True), start=1):
            box, label = self._choose(one["boxes"].float(), one["labels"], one["scores"], crop, size, number)
            boxes.append(box)
            labels.append(label)
        return asked_of_box(self, BoxScore(torch.stack(boxes), labels), crops, size)

    @property
    def text(self) -> str:
        """As the command line takes it."""
        place = str(self.rank) if self.corners is None else ",".join(map(repr, self.corners))
        return place if self.label is None else f"{place}:{self.label}"

    def _choose(
        self, boxes: Tensor, labels: Tensor, scores: Tensor, crop: Crop, size: tuple[int, int], number: int
    ) -> tuple[Tensor, int]:
        mine = torch.ones_like(labels, dtype=torch.bool) if self.label is None else labels == self.label
        called = "anything" if self.label is None else f"class {self.label}"
        if self.corners is None:
            order = scores.masked_fill(~mine, -1).argsort(descending=True, stable=True)[: int(mine.sum())]
            if not len(order):
                what = "nothing" if self.label is None else f"no {called}"
                raise ExplainError(
                    f"The detector finds {what} in picture {number}.",
                    hint=_seen(labels, "It finds") or "Try another picture.",
                )
            if not 1 <= self.rank <= len(order):
                raise ExplainError(
                    f"The detector finds {called} {len(order)} times in picture {number}; there is no box "
                    f"{self.rank} of it."
                )
            chosen = int(order[self.rank - 1])
            check_found_box(boxes[chosen].tolist(), self.rank)
            return boxes[chosen].cpu(), int(labels[chosen])
        left, top, right, bottom = self.corners
        if right <= 0 or bottom <= 0 or left >= crop.picture_width or top >= crop.picture_height:
            raise UsageError(
                f"The box {_written(self.corners)} lies outside the picture, which has {crop.picture_width} x "
                f"{crop.picture_height} pixels.",
                hint=_A_BOX,
            )
        box = torch.tensor(in_input(self.corners, crop, size))
        shares = overlaps(boxes, box.to(boxes)).masked_fill(~mine, 0)
        if not len(shares) or float(shares.max()) < BoxScore.LEAST_OVERLAP:
            raise ExplainError(
                f"The detector finds {called} nowhere in picture {number} with half an overlap with this box.",
                hint="Boxes are left,top,right,bottom in pixels of the picture; 1 is the surest that was found.",
            )
        return box, int(labels[int(shares.argmax())])


_A_BOX = "A box is left, top, right, bottom in pixels of the picture, with left < right and top < bottom."


def fault_of_box(corners: Sequence[float]) -> str:
    """What is wrong with these corners as a box, "" where nothing is."""
    left, top, right, bottom = corners
    if not all(map(math.isfinite, corners)):
        return "has a corner that is not finite"
    if left > right or top > bottom:
        return "has its corners swapped"
    return "has no area" if left == right or top == bottom else ""


def check_found_box(corners: Sequence[float], rank: int) -> None:
    """Raises ExplainError for a box of the detector's own that is none."""
    fault = fault_of_box(corners)
    if fault:
        raise ExplainError(f"Box {rank} that the detector finds {fault}.", hint="Choose another box.")


def _written(corners: Sequence[float]) -> str:
    return ",".join(f"{corner:g}" for corner in corners)


def asked_of_pixels(index: int, read: PixelScores, count: int) -> Asked:
    """Of these pixels of `count` pictures, which are those of a class."""
    names = (f"pixels of class {index}",) * count
    return Asked(read=read, columns=(index,) * count, names=names, pixels_of=index)


def asked_of_box(question: OfBox, read: BoxScore, crops: Sequence[Crop], size: tuple[int, int]) -> Asked:
    """Of these boxes, one in each picture. size: (height, width) of the model's input."""
    places = tuple(in_picture(box, crop, size) for box, crop in zip(read.boxes.tolist(), crops, strict=True))
    return Asked(
        read=read,
        columns=(0,) * len(places),
        names=tuple(
            f"box {','.join(f'{c:.0f}' for c in place)} of class {label}"
            for place, label in zip(places, read.labels, strict=True)
        ),
        labels=read.labels,
        box=question.text,
        places=places,
    )


def _seen(labels: Tensor, begin: str) -> str:
    classes = sorted(set(labels.tolist()))
    return f"{begin} class {', '.join(map(str, classes[:8]))}." if classes else ""


def in_input(corners: Sequence[float], crop: Crop, size: tuple[int, int]) -> Corners:
    """From pixels of the upright picture to pixels of the model's input. size: (height, width)."""
    left, top, right, bottom = corners
    across, down = size[1] / crop.width, size[0] / crop.height
    return (
        (left - crop.left) * across,
        (top - crop.top) * down,
        (right - crop.left) * across,
        (bottom - crop.top) * down,
    )


def in_picture(corners: Sequence[float], crop: Crop, size: tuple[int, int]) -> Corners:
    """The way back."""
    left, top, right, bottom = corners
    across, down = crop.width / size[1], crop.height / size[0]
    return left * across + crop.left, top * down + crop.top, right * across + crop.left, bottom * down + crop.top


def _answer(model: nn.Module, batch: Tensor) -> object:
    with capture(model) as lent, torch.no_grad():
        answer: object = lent.model(like_the_model(batch, lent.model))
        return answer
