"""Attention rollout: how much of each patch reaches the answer when attention is followed through all blocks.

Source: Abnar and Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020 (arXiv 2005.00928), section 3.
"""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.cam.engine.scene import Scene
from inspector.cam.layers.tokens import follow_attention, read_out
from inspector.cam.method import Method
from inspector.cam.report import LayerProposal


def attention_rollout(scene: Scene, layer: LayerProposal) -> Tensor:
    """The product of (mean over heads + identity) / 2 from the last block to the first. Returns (N, h, w), the same for
    every class."""
    attention = follow_attention(scene, gradients=False)
    size = attention.weights[0].shape[-1]
    identity = torch.eye(size, dtype=attention.weights[0].dtype, device=attention.weights[0].device)
    total = identity
    for weights in attention.weights:
        # Rows of the mean add up to 1, so those of the sum add up to 2.
        total = (weights.mean(dim=1) + identity) / 2 @ total
    return read_out(attention, total)


METHOD = Method(
    id="attention-rollout",
    title="Attention rollout",
    paper="Abnar 2020, arXiv 2005.00928",
    says="How much of each patch attention carries to the answer; it is the same for every class.",
    gradient=False,
    compute=attention_rollout,
    passes=lambda scene, layer: scene.batch.shape[0],
    by_layer=False,
)
