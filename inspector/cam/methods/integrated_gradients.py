"""Integrated gradients: the score's rise from an empty picture to this one, shared out among the pixels.

Source: Sundararajan and others, "Axiomatic Attribution for Deep Networks", ICML 2017 (arXiv 1703.01365), equations 1
and 3. The empty picture is 0 after preprocessing, the mean colour of the training pictures.
"""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.cam.engine.scene import Scene
from inspector.cam.engine.tensors import working_precision
from inspector.cam.method import FORWARD_AND_BACKWARD, Method, Unit
from inspector.cam.report import LayerProposal

STEPS = 32


def integrated_gradients(scene: Scene, layer: LayerProposal) -> Tensor:
    """x times the mean gradient on the way from 0 to x, added over the channels. Returns (N, H, W), signed.

    The middle of each of STEPS pieces is taken; the sum of the map is then near s(x) - s(0).
    """
    total = torch.zeros_like(working_precision(scene.batch))
    for number in range(STEPS):
        scene.progress(number, STEPS, "following the picture from nothing")
        _, gradient = scene.input_gradient(scene.batch * ((number + 0.5) / STEPS))
        total = total.to(gradient) + gradient / STEPS
    return (total * scene.batch.to(total)).sum(dim=1)


METHOD = Method(
    id="integrated-gradients",
    title="Integrated gradients",
    paper="Sundararajan 2017, arXiv 1703.01365",
    says="What each pixel adds to the score, from an empty picture to this one.",
    compute=integrated_gradients,
    passes=lambda scene, layer: FORWARD_AND_BACKWARD * STEPS * scene.batch.shape[0],
    by_layer=False,
    unit=Unit.PARTS,
)
