"""Guided Grad-CAM: guided backpropagation where Grad-CAM is warm.

Source: Selvaraju and others, "Grad-CAM", ICCV 2017 (arXiv 1610.02391), section 3.2.
"""

from __future__ import annotations

from torch import Tensor

from inspector.cam.engine.scene import Scene
from inspector.cam.engine.tensors import centres_of, enlarge, normalise, without_padding
from inspector.cam.method import FORWARD_AND_BACKWARD, Method, Unit
from inspector.cam.methods.grad_cam import METHOD as GRAD_CAM
from inspector.cam.methods.grad_cam import grad_cam
from inspector.cam.methods.guided_backpropagation import guided_gradient
from inspector.cam.report import LayerProposal


def guided_grad_cam(scene: Scene, layer: LayerProposal) -> Tensor:
    """The largest absolute guided gradient over the channels, times the enlarged heat. Returns (N, H, W), positive."""
    raw = grad_cam(scene.activation(layer), scene.gradient(layer)).sum(dim=1)
    heat = normalise(without_padding(raw, scene.shown))
    size = (scene.batch.shape[2], scene.batch.shape[3])
    enlarged = enlarge(heat, size, centres_of(layer, heat, aligned=scene.aligned))
    return guided_gradient(scene).abs().amax(dim=1) * enlarged


METHOD = Method(
    id="guided-grad-cam",
    title="Guided Grad-CAM",
    paper="Selvaraju 2017, arXiv 1610.02391, section 3.2",
    says="Sharp edges inside the places that Grad-CAM finds.",
    compute=guided_grad_cam,
    passes=lambda scene, layer: FORWARD_AND_BACKWARD * scene.batch.shape[0],
    unit=Unit.OTHER,
    made_of=GRAD_CAM,
)
