"""Gradient rollout: attention followed through all blocks, counting only what raises the class's score.

Source: Chefer and others, "Generic Attention-model Explainability for Interpreting Bi-Modal and Encoder-Decoder
Transformers", ICCV 2021 (arXiv 2103.15679), equations 5 and 6.
"""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.cam.engine.scene import Scene
from inspector.cam.layers.tokens import follow_attention, read_out
from inspector.cam.method import FORWARD_AND_BACKWARD, Method, Unit
from inspector.cam.report import LayerProposal


def gradient_rollout(scene: Scene, layer: LayerProposal) -> Tensor:
    """R = R + mean over heads of relu(gradient x attention) R, block by block, from the identity. Returns (N, h, w)."""
    attention = follow_attention(scene, gradients=True)
    size = attention.weights[0].shape[-1]
    total = torch.eye(size, dtype=attention.weights[0].dtype, device=attention.weights[0].device)
    for weights, gradient in zip(attention.weights, attention.gradients, strict=True):
        total = total + (gradient * weights).clamp_min(0).mean(dim=1) @ total
    # What the identity started with is the tokens themselves and no relevance of one to another.
    return read_out(attention, total - torch.eye(size, dtype=total.dtype, device=total.device))


METHOD = Method(
    id="gradient-rollout",
    title="Gradient rollout",
    paper="Chefer 2021, arXiv 2103.15679",
    says="Attention followed through all blocks, weighted by what raises the class's score.",
    compute=gradient_rollout,
    passes=lambda scene, layer: FORWARD_AND_BACKWARD * scene.batch.shape[0],
    by_layer=False,
    unit=Unit.OTHER,
)
