"""A word where measurements speak against a method at a layer, and silence elsewhere."""

from __future__ import annotations

import pytest

from inspector.cam.advice import advice, note
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
