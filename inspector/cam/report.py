"""Heat maps with everything needed to judge and repeat them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inspector.cam.targets.answers import AnswerKind
from inspector.findings import Finding

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Centres:
    """Where the cells of a layer look: the centres of their receptive fields, (down, across) in pixels of the model's
    input, whose first pixel covers 0 to 1.

    first: of the cell at the top left. step: from one cell to the next. Spread evenly over H pixels, h cells would be
    H / h apart and the first at half of that; padding at strides moves them up and to the left.
    """

    first: tuple[float, float]
    step: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerProposal:
    """A layer whose output is a spatial map, found by tracing shapes in one forward pass.

    path: dotted module name. kind: class name. shape: of its output without the batch dimension.
    layout: "NCHW" (channels first), "NHWC", or "NLC" (tokens). prefix_tokens: class and register tokens before the
    patches; 0 for maps.
    grid: (height, width) of the map. rank: 1 for the suggested one, 0 for a layer asked for by name that is not among
    the proposals. reason: why it stands where it does. call: which call within one forward, for modules that are
    called several times (a shared ReLU). calls: how many there are. layout_given: somebody set layout, prefix_tokens
    and grid otherwise than they were found. centres: where its cells look, None where the ways from the picture to it
    disagree or hold something that nothing is known of; then they are taken as spread evenly. patches_answer: the
    answer is read from the patches themselves (their mean), whatever tokens stand before them.
    """

    path: str
    kind: str
    shape: tuple[int, ...]
    layout: str
    prefix_tokens: int
    grid: tuple[int, int]
    rank: int
    reason: str
    call: int = 0
    calls: int = 1
    layout_given: bool = False
    centres: Centres | None = None
    patches_answer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Preprocessing:
    """From a picture to the model's input, and why these numbers.

    resize: length of the shorter side, or (height, width); None to keep. crop: (height, width) of the centre crop,
    None to keep. mean, std: per channel, after scaling to 0..1. channels: 3 for RGB, 1 for grey.
    interpolation: "bilinear" or "bicubic". source: where it comes from ("ResNet18_Weights.IMAGENET1K_V1",
    "stated default"). assumed: nobody stated it for this file.
    """

    resize: int | tuple[int, int] | None
    crop: tuple[int, int] | None
    mean: tuple[float, ...]
    std: tuple[float, ...]
    channels: int
    interpolation: str
    source: str
    assumed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Crop:
    """Which rectangle of the original picture the model saw, in original pixels (may be fractional)."""

    left: float
    top: float
    width: float
    height: float
    picture_width: int
    picture_height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One class of the model's answer. name: None where nothing names the classes. probability: by softmax or sigmoid,
    as the answer is meant (`targets/answers.py`), None of a plain number; of a box the detector's own confidence,
    which `logit` is too."""

    index: int
    name: str | None
    logit: float
    probability: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a map was made beside its method; the defaults change nothing.

    fusion: how the maps of several layers became one ("mean", "maximum", "product"), "" for one layer.
    eigen_smooth: the strongest pattern over the channels instead of their sum. augmented: the mean over six changed
    copies of the picture. seed: for methods that draw random numbers. aligned: the layer's cells are drawn
    at the centres of their receptive fields (`LayerProposal.centres`), and not spread evenly over the picture, as other
    tools have it and as trained kernels may make good for (docs/measurements.md).
    """

    fusion: str = ""
    eigen_smooth: bool = False
    augmented: bool = False
    seed: int = 0
    aligned: bool = False


PLAIN = Options()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Explanation:
    """A heat map.

    heat: (H, W) float32 in [0, 1] at the model's input size: ReLU, divided by its own maximum, then enlarged
    bilinearly, so that its peak lies a little below 1 where the layer is coarser; all 0 for an empty map.
    raw: (h, w) float32, the map at the layer's resolution before ReLU; for fused layers, which have none, the heat.
    logits: (classes,) float32, every score of the answer in output order.
    method, layer, target: what was asked. layers: those that were fused into one, (layer,) otherwise. asked: what the
    scores are of: "class", "pixels of class 3", "box 10,20,30,40 of class 3". pixels_of, box: the same as the command
    line takes it, None and "" for a class. place: the box, left, top, right, bottom in pixels of the upright picture.
    answer: how the scores are meant. options: how the map was made. scores: top classes, best first.
    raw_minimum, raw_maximum: of `raw`. negative_share: share of its absolute mass below zero.
    findings: what is wrong with the map, with the cause (`empty_maps.py`). crop: geometry for overlays.
    """

    heat: NDArray[np.float32]
    raw: NDArray[np.float32]
    method: str
    layer: LayerProposal
    target: Score
    scores: tuple[Score, ...]
    raw_minimum: float
    raw_maximum: float
    negative_share: float
    preprocessing: Preprocessing
    crop: Crop
    findings: tuple[Finding, ...]
    versions: tuple[tuple[str, str], ...]
    seconds: float
    logits: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    layers: tuple[LayerProposal, ...] = ()
    asked: str = "class"
    pixels_of: int | None = None
    box: str = ""
    place: tuple[float, float, float, float] | None = None
    answer: AnswerKind = AnswerKind.ONE
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """Maps of one picture by several methods at several layers for several classes, from one forward pass.

    cells: [class][layer][method], None where a method has no map at this layer of this model. A method that looks at no
    layer has the same map in every row. layers, methods, targets: the axes, in the order that was asked for.
    refused: (method, layer, why) of what is None. scores: top classes, best first. seconds: for all of it.
    """

    cells: tuple[tuple[tuple[Explanation | None, ...], ...], ...]
    layers: tuple[LayerProposal, ...]
    methods: tuple[str, ...]
    targets: tuple[Score, ...]
    refused: tuple[tuple[str, str, str], ...]
    scores: tuple[Score, ...]
    seconds: float

    @property
    def maps(self) -> tuple[Explanation, ...]:
        """Every map there is, class by class, layer by layer."""
        return tuple(cell for rows in self.cells for row in rows for cell in row if cell is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What maps will cost before they are made.

    passes: forward passes of one picture, about, a backward counting as two. by_method: (method, passes) beside the
    one that all share. seconds: passes times what one forward took just now on this machine.
    """

    passes: int
    by_method: tuple[tuple[str, int], ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Maps:
    """Maps of N pictures, on the CPU, float32 or the model's float64.

    heat: (N, H, W) in [0, 1] at the input size: ReLU, divided by its own maximum, enlarged bilinearly; all 0 where
    nothing speaks for the class or the map is not finite. raw: (N, h, w) before ReLU, at the layer's grid; of a
    detector that pads its pictures without the padding.
    logits: (N, classes). targets: (N,), the class of each map. layer: where. method: its id.
    gradient_peak: (N,) largest absolute gradient over the layer's grid, NaN where the method reads none of it.
    prefix_peak: (N,) the same over class and register tokens, 0 for maps. activation_peak: (N,) largest absolute
    activation over the grid (of the picture for methods that look at no layer). rounding_share: (N,) how much of the
    highest magnitude rounding alone can make, NaN where the map is no sum of gradient times activation.
    weight_spread: (N,) by how much the largest of its channels' weights exceeds the smallest, relatively; NaN for
    methods that do not weigh by scores.
    precision: in which it was computed.
    """

    heat: Tensor
    raw: Tensor
    logits: Tensor
    targets: Tensor
    layer: LayerProposal
    method: str
    gradient_peak: Tensor
    prefix_peak: Tensor
    activation_peak: Tensor
    rounding_share: Tensor
    weight_spread: Tensor
    precision: torch.dtype


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Made:
    """Maps, those of the layers that were fused into them, () where none were, and how they were made."""

    maps: Maps
    parts: tuple[Maps, ...] = ()
    options: Options = PLAIN
