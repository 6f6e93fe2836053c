"""Counterfactual Grad-CAM: what speaks against the class, what would have to go for it to be answered more surely.

Source: Selvaraju and others, "Grad-CAM", ICCV 2017 (arXiv 1610.02391), section 3.3, equation 3.
"""

from __future__ import annotations

from torch import Tensor

from inspector.cam.method import Method, Unit
from inspector.cam.methods.grad_cam import grad_cam


def counterfactual(activation: Tensor, gradient: Tensor) -> Tensor:
    """Grad-CAM of the negated gradient. activation, gradient: (N, C, h, w). Returns (N, C, h, w), signed."""
    return grad_cam(activation, -gradient)


METHOD = Method(
    id="counterfactual",
    title="Counterfactual",
    paper="Selvaraju 2017, arXiv 1610.02391, section 3.3",
    says="Places that speak against the class.",
    arithmetic=counterfactual,
    unit=Unit.PARTS,
)
