"""One heat map with everything needed to judge and repeat it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerProposal:
    """A layer whose output is a spatial map, found by tracing shapes in one forward pass.

    path: dotted module name. kind: class name. shape: of its output without the batch dimension.
    layout: "NCHW" (channels first), "NHWC", or "NLC" (tokens). prefix_tokens: class and register tokens before the
    patches; 0 for maps.
    grid: (height, width) of the map. rank: 1 for the suggested one, 0 for a layer asked for by name that is not among
    the proposals. reason: why it stands where it does. call: which call within one forward, for modules that are
    called several times (a shared ReLU).
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
    """One class of the model's answer. name: None where nothing names the classes. probability: softmax, or
    sigmoid where the model has one output."""

    index: int
    name: str | None
    logit: float
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Explanation:
    """A heat map.

    heat: (H, W) float32 in [0, 1] at the model's input size: ReLU, divided by its own maximum, then enlarged
    bilinearly, so that its peak lies a little below 1 where the layer is coarser; all 0 for an empty map.
    raw: (h, w) float32, the map at the layer's resolution before ReLU. method, layer, target: what was asked.
    scores: top classes, best first. raw_minimum, raw_maximum: of `raw`. negative_share: share of
    its absolute mass below zero.
    findings: constant, all-negative, zero-gradient or non-finite maps, with the cause. crop: geometry for overlays.
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
