"""SmoothGrad: gradient saliency averaged over noisy copies of the picture.

Source: Smilkov and others, "SmoothGrad: removing noise by adding noise", 2017 (arXiv 1706.03825), section 3.
"""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.cam.engine.scene import Scene
from inspector.cam.engine.tensors import working_precision
from inspector.cam.method import FORWARD_AND_BACKWARD, Method, Unit
from inspector.cam.report import LayerProposal

COPIES = 16
# Of the picture's range; the paper finds 10 to 20 %.
NOISE = 0.15


def smooth_grad(scene: Scene, layer: LayerProposal) -> Tensor:
    """The largest absolute mean gradient over the picture's channels. Returns (N, H, W), never negative."""
    total = torch.zeros_like(working_precision(scene.batch))
    span = scene.batch.amax(dim=(1, 2, 3), keepdim=True) - scene.batch.amin(dim=(1, 2, 3), keepdim=True)
    for number in range(COPIES):
        scene.progress(number, COPIES, "adding noise to the picture")
        _, gradient = scene.input_gradient(scene.batch + NOISE * span * scene.noise(number))
        total = total.to(gradient) + gradient / COPIES
    return total.abs().amax(dim=1)


METHOD = Method(
    id="smooth-grad",
    title="SmoothGrad",
    paper="Smilkov 2017, arXiv 1706.03825",
    says="Gradient saliency averaged over noisy copies of the picture.",
    compute=smooth_grad,
    passes=lambda scene, layer: FORWARD_AND_BACKWARD * COPIES * scene.batch.shape[0],
    by_layer=False,
    seeded=True,
    unit=Unit.SLOPES,
)
