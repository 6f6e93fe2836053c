"""Grad-CAM: which places of the layer's channels speak for the class, each channel weighted by its mean gradient.

Source: Selvaraju and others, "Grad-CAM: Visual Explanations from Deep Networks via Gradient-based Localization",
ICCV 2017 (arXiv 1610.02391), equations 1 and 2.
"""

from __future__ import annotations

from torch import Tensor

from inspector.cam.method import Method, Unit


def grad_cam(activation: Tensor, gradient: Tensor) -> Tensor:
    """w_k A_k with w_k the mean of the gradient over places; sum and ReLU of equation 2 are the engine's.

    activation, gradient: (N, C, h, w). Returns (N, C, h, w), signed.
    """
    return gradient.mean(dim=(2, 3), keepdim=True) * activation


METHOD = Method(
    id="grad-cam",
    title="Grad-CAM",
    paper="Selvaraju 2017, arXiv 1610.02391",
    says="Places whose channels raise the class score on average over the picture; weak where a class token answers.",
    arithmetic=grad_cam,
    per_channel=True,
    unit=Unit.PARTS,
)
