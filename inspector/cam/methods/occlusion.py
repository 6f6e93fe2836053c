"""Occlusion: how far the score falls when a square of the picture is covered.

Source: Zeiler and Fergus, "Visualizing and Understanding Convolutional Networks", ECCV 2014 (arXiv 1311.2901), section
4.2. The cover is 0 after preprocessing, the mean colour of the training pictures.
"""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.cam.engine.scene import CHUNK, Scene
from inspector.cam.method import Method, Unit
from inspector.cam.report import LayerProposal

# A square is a fifth of the shorter side, and moves by a third of itself.
SIDE = 5
MOVE = 3


def occlusion(scene: Scene, layer: LayerProposal) -> Tensor:
    """Mean fall of the score over the squares that cover a pixel. Returns (N, H, W), signed."""
    height, width = scene.batch.shape[2:]
    places = _places(height, width)
    side = _side(height, width)
    made = []
    for index in range(scene.batch.shape[0]):
        picture, target = scene.batch[index], scene.targets[index]
        score = scene.logits[index, target].detach()
        fall = torch.zeros(height, width, dtype=score.dtype, device=score.device)
        covered = torch.zeros_like(fall)
        for start in range(0, len(places), CHUNK):
            scene.progress(index * len(places) + start, scene.batch.shape[0] * len(places), "covering the picture")
            some = places[start : start + CHUNK]
            pictures = picture.repeat(len(some), 1, 1, 1)
            for row, (top, left) in enumerate(some):
                pictures[row, :, top : top + side, left : left + side] = 0
            falls = score - scene.answer(pictures, index)[:, target]
            for (top, left), amount in zip(some, falls, strict=True):
                fall[top : top + side, left : left + side] += amount
                covered[top : top + side, left : left + side] += 1
        made.append(fall / covered)
    return torch.stack(made)


def _side(height: int, width: int) -> int:
    return max(1, min(height, width) // SIDE)


def _places(height: int, width: int) -> list[tuple[int, int]]:
    """(top, left) of every square; the last of a row or column touches the edge, so that every pixel is covered."""
    side = _side(height, width)
    step = max(1, side // MOVE)
    tops, lefts = ([*range(0, length - side, step), length - side] for length in (height, width))
    return [(top, left) for top in tops for left in lefts]


METHOD = Method(
    id="occlusion",
    title="Occlusion",
    paper="Zeiler 2014, arXiv 1311.2901",
    says="How far the score falls when the place is covered; slow, and free of gradients.",
    gradient=False,
    compute=occlusion,
    passes=lambda scene, layer: scene.batch.shape[0] * len(_places(scene.batch.shape[2], scene.batch.shape[3])),
    by_layer=False,
    unit=Unit.FALLS,
)
