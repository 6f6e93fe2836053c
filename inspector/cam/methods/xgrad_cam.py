"""XGrad-CAM: Grad-CAM whose channel weights are the mean gradient where the channel is active.

Source: Fu and others, "Axiom-based Grad-CAM: Towards Accurate Visualization and Explanation of CNNs", BMVC 2020
(arXiv 2008.02312), equation 8.
"""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.cam.engine.tensors import stored_epsilon
from inspector.cam.method import Method, Unit

# A channel whose activation cancels to less than this share of its magnitude has no sum to divide by: rounding alone.
_CANCELLED = 1e-6


def xgrad_cam(activation: Tensor, gradient: Tensor) -> Tensor:
    """w_k A_k with w_k = sum g A / sum A; 0 where the sum over the channel cancels out.

    activation, gradient: (N, C, h, w). Returns (N, C, h, w), signed.
    """
    total = activation.sum(dim=(2, 3), keepdim=True)
    # Half precisions come rounded, and their sums are known no better.
    least = max(_CANCELLED, stored_epsilon(activation))
    usable = total.abs() > least * activation.abs().sum(dim=(2, 3), keepdim=True)
    share = (gradient * activation).sum(dim=(2, 3), keepdim=True)
    weights = torch.where(usable, share / torch.where(usable, total, torch.ones_like(total)), 0)
    return weights * activation


METHOD = Method(
    id="xgrad-cam",
    title="XGrad-CAM",
    paper="Fu 2020, arXiv 2008.02312",
    says="As Grad-CAM, with each channel's gradient averaged where the channel is active.",
    arithmetic=xgrad_cam,
    per_channel=True,
    unit=Unit.PARTS,
)
