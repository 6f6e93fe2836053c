"""Guided backpropagation: the picture's gradient, letting only what is positive back through each ReLU.

Source: Springenberg and others, "Striving for Simplicity: The All Convolutional Net", ICLR workshop 2015 (arXiv
1412.6806), section 3.4. It fails the randomisation test: it shows edges that the model sees, whatever the class
(Adebayo 2018, arXiv 1810.03292).
"""

from __future__ import annotations

from torch import Tensor

from inspector.cam.engine.guided import guided
from inspector.cam.engine.scene import Scene
from inspector.cam.method import FORWARD_AND_BACKWARD, Method, Unit
from inspector.cam.report import LayerProposal


def guided_gradient(scene: Scene) -> Tensor:
    """(N, C, H, W). Raises ExplainError for a model without ReLUs."""
    with guided():
        return scene.input_gradient(scene.batch)[1]


def guided_backpropagation(scene: Scene, layer: LayerProposal) -> Tensor:
    """The largest absolute guided gradient over the picture's channels. Returns (N, H, W), never negative."""
    return guided_gradient(scene).abs().amax(dim=1)


METHOD = Method(
    id="guided-backpropagation",
    title="Guided backpropagation",
    paper="Springenberg 2015, arXiv 1412.6806",
    says="Sharp edges that the model sees; hardly depends on the class or on what was learned.",
    compute=guided_backpropagation,
    passes=lambda scene, layer: FORWARD_AND_BACKWARD * scene.batch.shape[0],
    by_layer=False,
    unit=Unit.SLOPES,
)
