"""Gradient saliency: which pixels the score reacts to.

Source: Simonyan and others, "Deep Inside Convolutional Networks: Visualising Image Classification Models and Saliency
Maps", 2013 (arXiv 1312.6034), section 3.1.
"""

from __future__ import annotations

from torch import Tensor

from inspector.cam.engine.scene import Scene
from inspector.cam.method import FORWARD_AND_BACKWARD, Method, Unit
from inspector.cam.report import LayerProposal


def saliency(scene: Scene, layer: LayerProposal) -> Tensor:
    """The largest absolute gradient over the picture's channels. Returns (N, H, W), never negative."""
    _, gradient = scene.input_gradient(scene.batch)
    return gradient.abs().amax(dim=1)


METHOD = Method(
    id="saliency",
    title="Gradient saliency",
    paper="Simonyan 2013, arXiv 1312.6034",
    says="Pixels to which the score reacts, whichever way; noisy.",
    compute=saliency,
    passes=lambda scene, layer: FORWARD_AND_BACKWARD * scene.batch.shape[0],
    by_layer=False,
    unit=Unit.SLOPES,
)
