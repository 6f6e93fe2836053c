"""What a model's answer consists of, as it can be asked about: classes, pixels of classes, boxes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a column of the scores is."""

    CLASSES = "classes"
    PIXELS = "pixels"
    BOXES = "boxes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """left, top, right, bottom in pixels of the model's input. label: class index. score: 0 to 1."""

    corners: tuple[float, float, float, float]
    label: int
    score: float
