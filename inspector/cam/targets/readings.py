"""How a model's answer becomes scores: a row for each picture, a column for each thing that can be explained.

Every method works on such scores, so that what explains a class explains the pixels of a segmentation or the box of a
detection as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Protocol

import torch
from torch import Tensor

from inspector.cam.targets.answers import AnswerKind
from inspector.errors import ExplainError, TargetOutOfRange
from inspector.units import human_share


class Reading(Protocol):
    """answer: what the model gave for M pictures. pictures: which pictures of the batch they are (or copies of).

    Returns (M, K), in the answer's graph. Raises ExplainError when there is nothing of that kind in the answer.
    """

    def __call__(self, answer: object, pictures: Sequence[int]) -> Tensor: ...


def class_scores(answer: object, pictures: Sequence[int]) -> Tensor:
    """The class scores of a classifier, (M, classes); outputs of multi-label and regression models likewise."""
    scores = logits_of(answer)
    if scores.shape[0] != len(pictures):
        raise ExplainError(
            f"The model answers {len(pictures)} pictures with {scores.shape[0]} rows of scores.",
            hint="Heat maps of classes need a row for each picture.",
        )
    return scores


class PixelScores:
    """The mean score of every class over some pixels of a semantic segmentation.

    masks: (N, H, W) of bool, the pixels that are asked about in each picture of the batch, at the answer's size.
    """

    def __init__(self, masks: Tensor) -> None:
        self.masks = masks

    def __call__(self, answer: object, pictures: Sequence[int]) -> Tensor:
        scores = pixel_scores(answer)
        masks = self.masks[list(pictures)].to(scores.device)
        if masks.shape[1:] != scores.shape[2:]:
            ours, theirs = ("x".join(map(str, shape)) for shape in (masks.shape[1:], scores.shape[2:]))
            raise ExplainError(f"The mask has {ours} pixels and the answer {theirs}.")
        count = masks.sum(dim=(1, 2))
        if not bool(count.all()):
            raise ExplainError("No pixel of the picture is asked about, so there is nothing to explain.")
        return (scores * masks[:, None]).sum(dim=(2, 3)) / count[:, None]

    def mirrored(self, width: int) -> PixelScores:
        """The same for pictures mirrored left to right."""
        return PixelScores(self.masks.flip(2))

    @classmethod
    def of_class(cls, answer: object, index: int) -> PixelScores:
        """The pixels that the model itself gives to a class. answer: of the batch that will be explained.

        Raises TargetOutOfRange for a class the model does not have, ExplainError where a picture has no such pixel.
        """
        scores = pixel_scores(answer).detach()
        if not 0 <= index < scores.shape[1]:
            raise TargetOutOfRange(f"The model has {scores.shape[1]} classes; there is no class {index}.")
        masks = given_classes(scores) == index
        empty = [n for n in range(len(masks)) if not bool(masks[n].any())]
        if empty:
            seen = given_classes(scores[empty[0] : empty[0] + 1]).flatten()
            counts = torch.bincount(seen[seen >= 0], minlength=1)
            most = [k for k in counts.argsort(descending=True).tolist() if int(counts[k]) > 0][:5]
            shares = ", ".join(f"class {k} ({human_share(int(counts[k]) / seen.numel())})" for k in most)
            raise ExplainError(
                f"The model gives no pixel of picture {empty[0] + 1} to class {index}.",
                hint=f"It sees {shares} there." if most else "It gives none to any class.",
            )
        return cls(masks)


class BoxScore:
    """How sure a detector is of one box in each picture: score times overlap, over the detections of its label.

    boxes: (N, 4), left, top, right, bottom in pixels of the input. labels: (N,). The detections that overlap by less
    than half count nothing. One column.
    """

    LEAST_OVERLAP = 0.5

    def __init__(self, boxes: Tensor, labels: Sequence[int]) -> None:
        self.boxes = boxes
        self.labels = tuple(labels)

    def __call__(self, answer: object, pictures: Sequence[int]) -> Tensor:
        found = detections(answer)
        rows = []
        for one, picture in zip(found, pictures, strict=True):
            scores = one["scores"]
            shares = overlaps(one["boxes"], self.boxes[picture].to(scores.device))
            # The score alone is differentiated: the overlap says which detection is meant.
            shares = torch.where(shares >= self.LEAST_OVERLAP, shares, 0) * (one["labels"] == self.labels[picture])
            rows.append((scores * shares.detach().to(scores)).sum())
        return torch.stack(rows)[:, None]

    def mirrored(self, width: int) -> BoxScore:
        """The same for pictures mirrored left to right. width: of the input, in pixels."""
        left, top, right, bottom = self.boxes.unbind(dim=1)
        return BoxScore(torch.stack([width - right, top, width - left, bottom], dim=1), self.labels)


def shares_of(scores: Tensor, answer: AnswerKind, read: Reading = class_scores) -> Tensor | None:
    """(..., K) in 0..1 in float64, None for plain numbers. scores: (..., K), as `read` gave them.

    A box's score is the detector's own confidence, whatever the answer is said to be.
    """
    exact = scores.detach().double()
    if isinstance(read, BoxScore):
        return exact.clamp(0, 1)
    if answer is AnswerKind.NUMBERS:
        return None
    if answer is AnswerKind.SEVERAL or exact.shape[-1] == 1:
        return torch.sigmoid(exact)
    return torch.softmax(exact, dim=-1)


def mirrored(read: Reading, width: int) -> Reading:
    """How the same things are read of mirrored pictures; a reading that asks about no place stays as it is."""
    return read.mirrored(width) if isinstance(read, PixelScores | BoxScore) else read


def detections(answer: object) -> list[Mapping[str, Tensor]]:
    """What torchvision's detectors answer: boxes (K, 4), labels (K,) and scores (K,) for each picture."""
    if isinstance(answer, list) and _is_detector(answer):
        return answer
    raise ExplainError("The model's answer holds no boxes with labels and scores.", hint="Boxes need a detector.")


def _is_detector(answer: object) -> bool:
    return isinstance(answer, list | tuple) and all(
        isinstance(one, Mapping) and {"boxes", "labels", "scores"} <= set(one) for one in answer
    )


def overlaps(boxes: Tensor, box: Tensor) -> Tensor:
    """(K,) intersection over union of (K, 4) boxes with one (4,); 0 for boxes without area."""
    low, high = torch.maximum(boxes[:, :2], box[:2]), torch.minimum(boxes[:, 2:], box[2:])
    shared = (high - low).clamp_min(0).prod(dim=1)
    areas = (boxes[:, 2:] - boxes[:, :2]).clamp_min(0).prod(dim=1) + (box[2:] - box[:2]).clamp_min(0).prod() - shared
    return torch.where(areas > 0, shared / areas.clamp_min(1e-30), 0)


def pixel_scores(answer: object) -> Tensor:
    """(M, classes, H, W) of a semantic segmentation: what is called "out", else the first such tensor."""
    if isinstance(answer, Mapping) and isinstance(answer.get("out"), Tensor):
        answer = answer["out"]
    for tensor in tensors_in(answer):
        if tensor.dim() == 4 and tensor.is_floating_point() and min(tensor.shape[2:]) > 1:
            return tensor
    raise ExplainError(
        "The model's answer holds no scores for pixels (pictures, classes, height, width).",
        hint="Pixels of a class need a model for semantic segmentation.",
    )


def given_classes(scores: Tensor) -> Tensor:
    """(M, H, W), the class that each pixel is given: the highest, with one output alone 0 where it says yes, else -1.

    scores: (M, classes, H, W).
    """
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).long() - 1
    return scores.argmax(dim=1)


def logits_of(answer: object) -> Tensor:
    """The first tensor in a model's answer that looks like class scores, as (N, classes).

    Takes a tensor, a tuple (GoogLeNet and Inception with auxiliary heads) or a mapping (`logits` first, as language
    and vision libraries name it). (N,) becomes (N, 1), (N, K, 1, 1) becomes (N, K).
    Raises ExplainError with the shapes that were found.
    """
    found = list(tensors_in(answer))
    # The corners of a detector's boxes have the shape of class scores.
    for tensor in [] if _is_detector(answer) else found:
        if not tensor.is_floating_point():
            continue
        if tensor.dim() == 2:
            return tensor
        if tensor.dim() == 1:
            return tensor[:, None]
        if tensor.dim() > 2 and all(side == 1 for side in tensor.shape[2:]):
            return tensor.flatten(1)
    shapes = ", ".join("x".join(map(str, tensor.shape)) or "scalar" for tensor in found) or "no tensor"
    raise ExplainError(
        f"The model answers with {shapes}; class scores of shape (pictures, classes) are needed.",
        hint=_what_it_is(answer),
    )


def _what_it_is(answer: object) -> str:
    """How an answer that is no classifier's can be asked about."""
    for find, says in (
        (detections, "This is a detector: ask for a box, --box 1 for the surest."),
        (pixel_scores, "This is a model for semantic segmentation: ask for the pixels of a class, --pixels-of."),
    ):
        try:
            find(answer)
        except ExplainError:
            continue
        return says
    return "Heat maps of classes need a classifier."


def tensors_in(value: object) -> Iterator[Tensor]:
    """Every tensor in a model's answer; what is called "logits" first."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        named = [value[key] for key in ("logits",) if key in value]
        for item in (*named, *value.values()):
            yield from tensors_in(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors_in(item)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from tensors_in({field.name: getattr(value, field.name) for field in fields(value)})
