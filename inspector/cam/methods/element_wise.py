"""Element-wise Grad-CAM: only what speaks for the class, cell by cell and channel by channel.

Source: Pillai and Pirsiavash, "Explainable Models with Consistent Interpretations", AAAI 2021, section 3.
"""

from __future__ import annotations

from torch import Tensor

from inspector.cam.method import Method, Unit


def element_wise(activation: Tensor, gradient: Tensor) -> Tensor:
    """relu(g_k A_k). activation, gradient: (N, C, h, w). Returns (N, C, h, w), never negative."""
    return (gradient * activation).clamp_min(0)


METHOD = Method(
    id="element-wise",
    title="Element-wise Grad-CAM",
    paper="Pillai 2021, AAAI 35",
    says="As HiResCAM, with everything that speaks against the class left out before it is added up.",
    arithmetic=element_wise,
    unit=Unit.PARTS,
)
