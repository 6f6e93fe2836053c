"""Long names of layers, shortened for small places."""

import pytest

from inspector.web.explain.labels import short_names


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["layer4", "layer3", "layer2"], ["layer4", "layer3", "layer2"]),
        (["encoder.layers.encoder_layer_3.ln_1", "encoder.layers.encoder_layer_2.ln_1"],
         ["…encoder_layer_3.ln_1", "…encoder_layer_2.ln_1"]),
        (["features.denseblock4", "features.denseblock3", "features"],
         ["features.denseblock4", "features.denseblock3", "features"]),
        (["model.backbone.stage.a", "model.backbone.stage.a.b", "model.backbone.stage.c"], ["…a", "…a.b", "…c"]),
        (["encoder.layers.encoder_layer_3.ln_1"], ["encoder.layers.encoder_layer_3.ln_1"]),
        (["network.shared.relu:0", "network.shared.relu:1"], ["…relu:0", "…relu:1"]),
        (["backbone.features.1", "backbone.features.0.6", "backbone.features.0"],
         ["…features.1", "…features.0.6", "…features.0"]),
        (["0.blocks.10.norm1", "0.blocks.11.norm1"], ["…blocks.10.norm1", "…blocks.11.norm1"]),
        ([], []),
    ],
)  # fmt: skip
def test_only_what_all_share_is_left_out(names, shown):
    assert list(short_names(names).values()) == shown
    assert len(set(shown)) == len(names)
