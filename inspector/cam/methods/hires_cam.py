"""HiResCAM: what each cell contributes to the score, gradient times activation cell by cell.

Source: Draelos and Carin, "Use HiResCAM instead of Grad-CAM for faithful explanations of convolutional neural
networks", 2020 (arXiv 2011.08891), section 3.
"""

from __future__ import annotations

from torch import Tensor

from inspector.cam.method import Method, Unit


def hires_cam(activation: Tensor, gradient: Tensor) -> Tensor:
    """g_k A_k, cell by cell. activation, gradient: (N, C, h, w). Returns (N, C, h, w), signed."""
    return gradient * activation


METHOD = Method(
    id="hires-cam",
    title="HiResCAM",
    paper="Draelos 2020, arXiv 2011.08891",
    says="What each cell adds to the score; exact where everything behind the layer is linear.",
    arithmetic=hires_cam,
    unit=Unit.PARTS,
)
