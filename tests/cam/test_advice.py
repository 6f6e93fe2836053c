"""A word where measurements speak against a method at a layer, and silence elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from inspector.cam.advice import advice, note
from inspector.cam.layers.proposals import find_layer, propose_layers
from inspector.cam.methods import METHODS, method_named
from inspector.cam.report import LayerProposal


def _layer(layout: str, prefix: int) -> LayerProposal:
    shape = (64 + prefix, 96) if layout == "NLC" else (96, 8, 8)
    return LayerProposal(
        path="norm", kind="LayerNorm", shape=shape, layout=layout, prefix_tokens=prefix, grid=(8, 8), rank=1, reason=""
    )


def test_eigen_cam_says_why_it_is_not_pytorch_grad_cams() -> None:
    said = note(method_named("eigen-cam"), _layer("NCHW", 0))
    assert "Channels are not centred" in said and "pytorch-grad-cam subtracts each one's mean" in said
    assert note(method_named("grad-cam"), _layer("NCHW", 0)) == ""


def test_channel_weights_on_patches_behind_a_class_token_are_warned_of() -> None:
    warned = {method.id for method in METHODS if advice(method, _layer("NLC", 1))}
    assert warned == {"grad-cam", "grad-cam++", "xgrad-cam", "ablation-cam", "smooth-grad-cam++", "finer-cam"}
    assert advice(method_named("grad-cam"), _layer("NLC", 1)).startswith("Grad-CAM gives each channel")


@pytest.mark.parametrize("layer", [_layer("NCHW", 0), _layer("NLC", 0)])
def test_maps_and_tokens_without_a_class_token_are_not(layer: LayerProposal) -> None:
    assert not any(advice(method, layer) for method in METHODS)


def test_registers_before_patches_whose_mean_answers_are_no_class_token() -> None:
    # Four registers stand before the patches, and the advice spoke of a class token that answers.
    layer = replace(_layer("NLC", 4), patches_answer=True)
    assert not any(advice(method, layer) for method in METHODS)


class Registers(nn.Module):
    """A transformer with registers. mean: whether it answers from the mean of its patches."""

    def __init__(self, mean: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.mean = mean
        self.patch = nn.Conv2d(3, 16, 8, 8)
        self.registers = nn.Parameter(torch.randn(1, 4, 16))
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True) for _ in range(3))
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.registers.expand(len(x), -1, -1), x], 1)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x[:, 4:].mean(1) if self.mean else x[:, 0])


@pytest.mark.parametrize("mean", [True, False])
def test_it_is_asked_of_the_network_where_its_answer_comes_from(mean: bool) -> None:
    model = Registers(mean).eval()
    layers = propose_layers(model, (3, 32, 32))
    assert {layer.patches_answer for layer in layers} == {mean}
    assert bool(advice(method_named("grad-cam"), layers[0])) != mean
    assert find_layer(model, "blocks.0.norm1", (3, 32, 32)).patches_answer == mean
