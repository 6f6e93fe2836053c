"""What a measure of trust is, what it is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from inspector.cam.engine.scene import Scene
from inspector.cam.targets.answers import AnswerKind
from inspector.cam.targets.readings import shares_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One picture, one answer, one map.

    scene: opened for this picture alone. heat: (H, W) in [0, 1], at the picture's size. remap: the heat of the same
    method and layer on a changed picture (1, C, H, W), None where the map has no method (a baseline). answer: how the
    scores are meant. at_once: pictures that go through the model together, between two chances to stop.
    """

    scene: Scene
    heat: Tensor
    remap: Callable[[Tensor], Tensor] | None = None
    answer: AnswerKind = AnswerKind.ONE
    at_once: int = 4

    @property
    def picture(self) -> Tensor:
        """(C, H, W), prepared."""
        return self.scene.batch[0]

    def probabilities(self, pictures: Tensor) -> Tensor:
        """(M,) of the target for changed copies (M, C, H, W), in float64: its share as the answer is read (softmax,
        sigmoid, a detector's confidence).

        Of an answer of plain numbers the number itself: perturbation curves are defined of any score (Samek 2015, arXiv
        1509.06321), and stay comparable since all maps of one picture have its unit.
        """
        scores = self.scene.answer(pictures, 0).double()
        shares = shares_of(scores, self.answer, self.scene.read)
        return (scores if shares is None else shares)[:, int(self.scene.targets[0])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """value: the number. curve: (x, y) pairs behind it, () when there are none."""

    value: float
    curve: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One measure.

    id, title, paper. says: what it measures, for people. higher: whether more is better, None when neither is.
    compute: the case to the number. passes, maps, fills: forward passes of one picture that it takes, maps that it asks
    the method for (so that baselines have no value), pictures that it fills in. of_share: divides by a probability or
    compares two, so that an answer of plain numbers has no value.
    """

    id: str
    title: str
    paper: str
    says: str
    higher: bool | None
    compute: Callable[[Case], Measured]
    passes: int = 0
    maps: int = 0
    fills: int = 0
    of_share: bool = False

    def refuses(self, answer: AnswerKind) -> str:
        """Why it has no value for such an answer, "" where it has one."""
        if self.of_share and answer is AnswerKind.NUMBERS:
            return f"{self.title} is about a probability; the answer is a plain number, which has none."
        return ""


def area(curve: list[tuple[float, float]]) -> float:
    """Under straight lines between the points, over the width of the curve."""
    width = curve[-1][0] - curve[0][0]
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(curve)) / width


def by_heat(heat: Tensor) -> Tensor:
    """(H * W,) pixel numbers, the hottest first; equal ones from top left to bottom right."""
    return torch.argsort(heat.flatten(), descending=True, stable=True)
