"""Grad-CAM++: Grad-CAM whose channel weights count each place by how sure the score is of it.

Source: Chattopadhay and others, "Grad-CAM++: Generalized Gradient-based Visual Explanations for Deep Convolutional
Networks", WACV 2018 (arXiv 1710.11063), equation 19 and the weights before it. The factor exp(score) of the paper is
the same in every channel and cancels when the map is divided by its maximum.
"""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.cam.method import Method, Unit


def grad_cam_plus_plus(activation: Tensor, gradient: Tensor) -> Tensor:
    """w_k A_k with w_k = sum alpha relu(g) and alpha = g^2 / (2 g^2 + (sum A) g^3), 0 where that is 0 / 0.

    activation, gradient: (N, C, h, w). Returns (N, C, h, w), signed.
    """
    # g^2 is divided out, so that faint gradients do not vanish in the square: alpha = 1 / (2 + (sum A) g).
    denominator = 2 + activation.sum(dim=(2, 3), keepdim=True) * gradient
    usable = (gradient != 0) & (denominator != 0)
    alpha = torch.where(usable, 1 / torch.where(usable, denominator, torch.ones_like(denominator)), 0)
    weights = (alpha * gradient.clamp_min(0)).sum(dim=(2, 3), keepdim=True)
    return weights * activation


METHOD = Method(
    id="grad-cam++",
    title="Grad-CAM++",
    paper="Chattopadhay 2018, arXiv 1710.11063",
    says="As Grad-CAM, with channels weighted by the places that raise the score; made for several objects of a class.",
    arithmetic=grad_cam_plus_plus,
    per_channel=True,
    unit=Unit.OTHER,
)
