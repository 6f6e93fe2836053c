"""LayerCAM: activation where the gradient is positive; made for shallow layers, whose cells are fine.

Source: Jiang and others, "LayerCAM: Exploring Hierarchical Class Activation Maps for Localization", IEEE Transactions
on Image Processing 30, 2021, equations 5 and 6.
"""

from __future__ import annotations

from torch import Tensor

from inspector.cam.method import Method, Unit


def layer_cam(activation: Tensor, gradient: Tensor) -> Tensor:
    """relu(g_k) A_k. activation, gradient: (N, C, h, w). Returns (N, C, h, w), signed."""
    return gradient.clamp_min(0) * activation


METHOD = Method(
    id="layer-cam",
    title="LayerCAM",
    paper="Jiang 2021, IEEE TIP 30",
    says="Activation of the cells whose gradient speaks for the class; fine detail at early layers.",
    arithmetic=layer_cam,
    unit=Unit.PARTS,
)
