"""Smooth Grad-CAM++: Grad-CAM++ whose gradients are averaged over noisy copies of the picture.

Source: Omeiza and others, "Smooth Grad-CAM++: An Enhanced Inference Level Visualization Technique for Deep
Convolutional Neural Network Models", 2019 (arXiv 1908.01224), equations 5 to 7: the powers of the gradient are
averaged, one by one, and the activation is that of the clean picture.
"""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.cam.engine.scene import Scene, place_of
from inspector.cam.engine.tensors import spatial, working_precision
from inspector.cam.method import FORWARD_AND_BACKWARD, Method, Unit
from inspector.cam.report import LayerProposal

COPIES = 8
# Of the picture's range, as in SmoothGrad (arXiv 1706.03825, section 3).
NOISE = 0.15


def smooth_grad_cam_plus_plus(scene: Scene, layer: LayerProposal) -> Tensor:
    """Grad-CAM++ of the averaged first, second and third powers of the gradient. Returns (N, C, h, w), signed."""
    activation = scene.activation(layer)
    first, second, third = (torch.zeros_like(activation) for _ in range(3))
    span = scene.batch.amax(dim=(1, 2, 3), keepdim=True) - scene.batch.amin(dim=(1, 2, 3), keepdim=True)
    for number in range(COPIES):
        scene.progress(number, COPIES, "adding noise to the picture")
        noisy = scene.again(scene.batch + NOISE * span * scene.noise(number))
        found = noisy.gradients(scene.targets)[place_of(layer)]
        gradient = spatial(working_precision(found), layer)[0]
        first += gradient / COPIES
        second += gradient**2 / COPIES
        third += gradient**3 / COPIES
    denominator = 2 * second + activation.sum(dim=(2, 3), keepdim=True) * third
    usable = denominator != 0
    alpha = torch.where(usable, second / torch.where(usable, denominator, torch.ones_like(denominator)), 0)
    weights = (alpha * first.clamp_min(0)).sum(dim=(2, 3), keepdim=True)
    return weights * activation


METHOD = Method(
    id="smooth-grad-cam++",
    title="Smooth Grad-CAM++",
    paper="Omeiza 2019, arXiv 1908.01224",
    says="Grad-CAM++ averaged over noisy copies of the picture.",
    compute=smooth_grad_cam_plus_plus,
    passes=lambda scene, layer: FORWARD_AND_BACKWARD * COPIES * scene.batch.shape[0],
    seeded=True,
    per_channel=True,
    unit=Unit.OTHER,
)
