"""LeGrad: how the class's score of each block's tokens reacts to that block's attention, added up over the blocks.

Source: Bousselham and others, "LeGrad: An Explainability Method for Vision Transformers via Feature Formation
Sensitivity", 2024 (arXiv 2404.03214), section 3.2.
"""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.cam.engine.scene import Scene
from inspector.cam.layers.tokens import block_attentions
from inspector.cam.method import Method, Unit
from inspector.cam.report import LayerProposal


def le_grad(scene: Scene, layer: LayerProposal) -> Tensor:
    """Sum over blocks of relu(d score of the block's mean token / d attention), its mean over heads and queries.

    The mean token goes through what is behind the last block, in every token's place, so that the head reads it however
    it pools. Returns (N, h, w), never negative.
    """
    made = []
    for index in range(scene.batch.shape[0]):
        with block_attentions(scene, index) as blocks:
            total = torch.zeros(())
            for number, block in enumerate(blocks.found):
                scene.progress(index * len(blocks.found) + number, None, "following each block")
                mean = block.output.mean(dim=1, keepdim=True).expand_as(block.output)
                score = blocks.behind.answer(mean, grad=True)[0, scene.targets[index]]
                (gradient,) = torch.autograd.grad(score, [block.weights], retain_graph=True)
                total = total.to(gradient) + gradient.clamp_min(0).reshape(-1, gradient.shape[-1]).mean(dim=0)
            made.append(blocks.layer_map(total))
    return torch.stack(made)


METHOD = Method(
    id="le-grad",
    title="LeGrad",
    paper="Bousselham 2024, arXiv 2404.03214",
    says="Patches to whose attention the class's score reacts, in all blocks.",
    compute=le_grad,
    passes=lambda scene, layer: 8 * scene.batch.shape[0],
    by_layer=False,
    unit=Unit.OTHER,
)
