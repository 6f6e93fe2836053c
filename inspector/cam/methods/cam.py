"""CAM: the last map weighted by the head's own weights; the first of them all, for networks that end in a mean.

Source: Zhou and others, "Learning Deep Features for Discriminative Localization", CVPR 2016 (arXiv 1512.04150),
equation 2.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from inspector.cam.engine.scene import Scene
from inspector.cam.method import Method, Unit
from inspector.cam.report import LayerProposal
from inspector.errors import ExplainError

# The mean and the head are computed twice, in two orders: so many units of rounding apart, at the answer's size.
_ROUNDING = 1e4


def cam(scene: Scene, layer: LayerProposal) -> Tensor:
    """w_k A_k with the head's weight for the class. Returns (N, C, h, w), signed.

    Raises ExplainError where the answer is not one linear layer on the mean of this map: there CAM is not defined.
    """
    activation = scene.activation(layer)
    head = _head(scene, activation)
    weights = head.weight.detach().to(activation)[scene.targets]
    return weights[:, :, None, None] * activation


def _head(scene: Scene, activation: Tensor) -> nn.Linear:
    """The linear layer that gives the answer from the mean of the map, found by trying."""
    logits = scene.logits.detach()
    mean = activation.mean(dim=(2, 3))
    most = _ROUNDING * torch.finfo(scene.tokens(scene.layers[0]).dtype).eps * float(logits.abs().max())
    for module in scene.model.modules():
        if isinstance(module, nn.Linear) and (module.out_features, module.in_features) == (
            logits.shape[1],
            mean.shape[1],
        ):
            weight, bias = module.weight.detach().to(mean), module.bias
            answer = mean @ weight.T + (0 if bias is None else bias.detach().to(mean))
            if float((answer - logits).abs().max()) <= most:
                return module
    raise ExplainError(
        "CAM needs a network whose answer is one linear layer on the mean of this layer's map, and this is none.",
        hint="Grad-CAM is the same map where CAM is defined, and defined everywhere else too.",
    )


METHOD = Method(
    id="cam",
    title="CAM",
    paper="Zhou 2016, arXiv 1512.04150",
    says="The last map weighted by the head; only for networks that end in a mean and one linear layer.",
    gradient=False,
    compute=cam,
    passes=lambda scene, layer: 0,
    unit=Unit.MEAN,
)
