"""What a class activation method is: an entry that turns what a scene has, or further passes of it, into a map.

Most methods are arithmetic on a layer's activation and gradient: any number of them, on any number of layers, come from
one forward and one backward. Some differentiate another score than the class's own (`objective`), which costs one more
backward; some need passes of their own (`compute`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from torch import Tensor

from inspector.cam.targets.objectives import Objective

if TYPE_CHECKING:
    from inspector.cam.engine.scene import Scene
    from inspector.cam.report import LayerProposal

# What a backward costs, and a forward with its backward, in forward passes.
BACKWARD = 2
FORWARD_AND_BACKWARD = 1 + BACKWARD

Arithmetic = Callable[[Tensor, Tensor], Tensor]
Compute = Callable[["Scene", "LayerProposal"], "Tensor | Weighed"]
Passes = Callable[["Scene", "LayerProposal"], int]
Pace = Callable[["Scene", "LayerProposal"], float]


@dataclass(frozen=True, slots=True)
class Weighed:
    """What a method computes that weighs channels by scores.

    parts: what each channel adds, (N, C, h, w). spread: (N,) by how much the largest of its channels' weights exceeds
    the smallest, relatively; NaN where no channel was weighed.
    """

    parts: Tensor
    spread: Tensor


class Unit(StrEnum):
    """What the numbers of a map are, beside the score that they explain.

    PARTS: of the score, which they add up to as far as it is linear. MEAN: the same for their mean. FALLS: each is a
    change of the score by itself. SLOPES: the score's change per unit of what the map is of. SHARES: of the score,
    times what the map is of. OTHER: they follow from the score and are no amounts of it. NONE: from the layer alone.
    """

    PARTS = "parts"
    MEAN = "mean"
    FALLS = "falls"
    SLOPES = "slopes"
    SHARES = "shares"
    OTHER = "other"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method.

    id: "grad-cam". title: "Grad-CAM". paper: where the formula is from. says: what the map shows, for people.
    arithmetic: (activation, gradient), each (N, C, h, w) and at least float32, to what each channel adds to the map
    before ReLU, (N, C, h, w). The engine adds the channels up; eigen: projects on their strongest pattern instead.
    gradient: whether a gradient is read at all. objective: (logits (N, classes), targets (N,)) to the scores
    (N,) that are differentiated instead of the targets' own.
    compute: instead of arithmetic, for methods that run the model again; (scene, layer) to the same by channel, alone
    or with how far their weights lie apart, or to the map before ReLU, (N, h, w). passes: how many forward passes of
    one picture that takes, for the estimate shown before it starts. pace: seconds of one of these, tried out now, where
    they are not whole ones; an open scene's.
    differs: why its maps are not those of another tool under the same name, "" where they are.
    by_layer: False for maps that belong to the model and not to a layer of it; they are (N, H, W) of the input or
    (N, h, w) of its tokens. seeded: draws random numbers (from the scene's seed). per_channel: a channel has one
    weight over all places. unit: what the map's numbers are. made_of: the method whose map of the same layer this
    one is made of.
    """

    id: str
    title: str
    paper: str
    says: str
    arithmetic: Arithmetic | None = None
    gradient: bool = True
    eigen: bool = False
    objective: Objective | None = None
    compute: Compute | None = None
    passes: Passes | None = None
    pace: Pace | None = None
    differs: str = ""
    by_layer: bool = True
    seeded: bool = False
    per_channel: bool = False
    unit: Unit = Unit.NONE
    made_of: Method | None = None
