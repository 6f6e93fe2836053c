"""Score-CAM: each channel as a mask over the picture, weighted by what the model says to what is left.

Source: Wang and others, "Score-CAM: Score-Weighted Visual Explanations for Convolutional Neural Networks", CVPR
workshops 2020 (arXiv 1910.01279), equations 3 to 6. The score of the empty picture, which the paper subtracts, is the
same in every channel and cancels in its softmax.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from inspector.cam.engine.scene import CHUNK, Scene
from inspector.cam.engine.tensors import enlarge, without_padding
from inspector.cam.method import Method, Weighed
from inspector.cam.report import LayerProposal

# Units in the last place by which equal scores may differ.
_UNITS = 64
_MOST = 50.0


def score_cam(scene: Scene, layer: LayerProposal) -> Weighed:
    """softmax_k(score of the picture under mask k) A_k, signed.

    A channel that is the same everywhere is no mask and weighs nothing.
    """
    activation = scene.activation(layer)
    count, channels = activation.shape[:2]
    size = (scene.batch.shape[2], scene.batch.shape[3])
    made = []
    spreads = torch.full((count,), torch.nan)
    for index in range(count):
        masks = enlarge(without_padding(activation[index], scene.shown), size)
        low, high = masks.amin(dim=(1, 2), keepdim=True), masks.amax(dim=(1, 2), keepdim=True)
        usable = (high > low)[:, 0, 0]
        picture = scene.batch[index].to(masks)
        scores = torch.full((channels,), -torch.inf, dtype=masks.dtype, device=masks.device)
        kept = usable.nonzero()[:, 0]
        for start in range(0, len(kept), CHUNK):
            scene.progress(index * channels + start, count * channels, "masking the picture")
            some = kept[start : start + CHUNK]
            shown = (masks[some] - low[some]) / (high[some] - low[some])
            answers = scene.answer(picture[None] * shown[:, None], index)
            scores[some] = answers[:, scene.targets[index]].to(scores)
        weights = torch.softmax(scores, dim=0) if len(kept) else torch.zeros_like(scores)
        if len(kept):
            spreads[index] = _spread(scores[kept], scene.tokens(layer).dtype)
        made.append(weights[:, None, None] * activation[index])
    return Weighed(torch.stack(made), spreads)


def _spread(scores: Tensor, stored: torch.dtype) -> float:
    """By how much softmax weighs the highest score more than the lowest; 0 where they differ by rounding alone.

    stored: in which precision the model computes. A score is a sum of terms of about its size, so some units in its
    last place are rounding.
    """
    apart = float(scores.max() - scores.min())
    rounding = _UNITS * torch.finfo(stored).eps * float(scores.abs().max())
    return math.expm1(min(apart, _MOST)) if apart > rounding else 0.0


METHOD = Method(
    id="score-cam",
    title="Score-CAM",
    paper="Wang 2020, arXiv 1910.01279",
    says="Each channel weighted by the score of the picture seen through it; slow, and free of gradients.",
    gradient=False,
    compute=score_cam,
    passes=lambda scene, layer: scene.batch.shape[0] * scene.activation(layer).shape[1],
)
