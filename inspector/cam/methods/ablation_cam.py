"""Ablation-CAM: how far the score falls when a channel is switched off; no gradient is used.

Source: Desai and Ramaswamy, "Ablation-CAM: Visual Explanations for Deep Convolutional Network via Gradient-free
Localization", WACV 2020, equation 5. The paper divides by the score, which turns the map over where the score is
negative; here it is divided by its magnitude.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor

from inspector.cam.engine.scene import CHUNK, Scene
from inspector.cam.engine.tensors import channel_axis
from inspector.cam.method import Method, Unit
from inspector.cam.report import LayerProposal


def ablation_cam(scene: Scene, layer: LayerProposal) -> Tensor:
    """w_k A_k with w_k = (s - s without channel k) / |s|. Returns (N, C, h, w), signed.

    Only what is behind the layer is computed again, once for each channel. Class and register tokens keep their values.
    """
    activation = scene.activation(layer)
    count, channels = activation.shape[:2]
    weights = torch.zeros(count, channels, dtype=activation.dtype, device=activation.device)
    axis = channel_axis(layer)
    for index in range(count):
        replay = scene.replay(layer, index)
        target = scene.targets[index]
        score = replay.logits[0, target]
        for start in range(0, channels, CHUNK):
            scene.progress(index * channels + start, count * channels, "switching channels off")
            switched = range(start, min(start + CHUNK, channels))
            outputs = replay.output.repeat(len(switched), *[1] * (replay.output.dim() - 1))
            for row, channel in enumerate(switched):
                patches = (
                    outputs[row].narrow(0, layer.prefix_tokens, outputs.shape[1] - layer.prefix_tokens)
                    if (layer.layout == "NLC")
                    else outputs[row]
                )
                patches.select(axis - 1, channel).zero_()
            weights[index, start : start + len(switched)] = score - replay.answer(outputs)[:, target]
        weights[index] /= score.abs() if float(score) != 0 else 1
    return weights[:, :, None, None] * activation


def seconds_of_one(scene: Scene, layer: LayerProposal) -> float:
    """What switching one channel off takes: only what is behind the layer, which may be next to nothing."""
    replay = scene.replay(layer, 0)
    outputs = replay.output.repeat(CHUNK, *[1] * (replay.output.dim() - 1))
    times = []
    for _ in range(2):  # the first of a size finds its way
        start = time.perf_counter()
        replay.answer(outputs)
        times.append(time.perf_counter() - start)
    return min(times) / CHUNK


METHOD = Method(
    id="ablation-cam",
    title="Ablation-CAM",
    paper="Desai 2020, WACV",
    says="Each channel weighted by how far the score falls without it; free of gradients, slow at early layers.",
    gradient=False,
    compute=ablation_cam,
    passes=lambda scene, layer: scene.batch.shape[0] * scene.activation(layer).shape[1],
    pace=seconds_of_one,
    per_channel=True,
    unit=Unit.SHARES,
)
