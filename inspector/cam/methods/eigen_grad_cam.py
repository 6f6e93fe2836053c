"""EigenGradCAM: the strongest pattern in gradient times activation, so that the class counts.

Source: Gildenblat and contributors, pytorch-grad-cam, which has the name and no paper: EigenCAM's projection
(arXiv 2008.00299) of gradient times activation.
"""

from __future__ import annotations

from torch import Tensor

from inspector.cam.method import Method
from inspector.cam.projection import first_component


def eigen_grad_cam(activation: Tensor, gradient: Tensor) -> Tensor:
    """g A (places x channels) projected on its first right singular vector. Returns (N, h, w), signed."""
    weighted = gradient * activation
    return first_component(weighted, weighted)


METHOD = Method(
    id="eigen-grad-cam",
    title="EigenGradCAM",
    paper="EigenCAM (Muhammad 2020, arXiv 2008.00299) of gradient times activation",
    says="The strongest pattern in what the layer adds to the class.",
    arithmetic=eigen_grad_cam,
)
