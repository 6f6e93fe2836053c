"""Which layer is proposed for which architecture, with which layout."""

from __future__ import annotations

import pytest
import torch
import torchvision
from torch import Tensor, nn

from inspector.cam.engine.trace import trace
from inspector.cam.layers.proposals import find_layer, propose_layers
from inspector.errors import ExplainError, LayerNotSpatial, NoSuchLayer


def on_meta(name: str, **options: object) -> nn.Module:
    with torch.device("meta"):
        return torchvision.models.get_model(name, weights=None, **options)


@pytest.mark.parametrize(
    ("name", "side", "path", "layout", "prefix", "grid"),
    [
        ("resnet18", 224, "layer4", "NCHW", 0, (7, 7)),
        ("resnet18", 64, "layer3", "NCHW", 0, (4, 4)),
        ("resnet18", 32, "layer2", "NCHW", 0, (4, 4)),
        ("vgg11", 224, "features.19", "NCHW", 0, (14, 14)),
        ("densenet121", 224, "features", "NCHW", 0, (7, 7)),
        ("mobilenet_v3_small", 224, "features", "NCHW", 0, (7, 7)),
        ("mobilenet_v3_small", 64, "features.8", "NCHW", 0, (4, 4)),
        ("efficientnet_b0", 224, "features", "NCHW", 0, (7, 7)),
        ("convnext_tiny", 224, "features", "NCHW", 0, (7, 7)),
        ("shufflenet_v2_x0_5", 192, "conv5", "NCHW", 0, (6, 6)),
        ("squeezenet1_1", 224, "features", "NCHW", 0, (13, 13)),
        ("inception_v3", 299, "Mixed_7c", "NCHW", 0, (8, 8)),
        ("googlenet", 224, "inception5b", "NCHW", 0, (7, 7)),
        ("maxvit_t", 224, "blocks.3", "NCHW", 0, (7, 7)),
        ("swin_t", 224, "norm", "NHWC", 0, (7, 7)),
        ("swin_v2_t", 256, "norm", "NHWC", 0, (8, 8)),
        ("vit_b_16", 224, "encoder.layers.encoder_layer_11.ln_1", "NLC", 1, (14, 14)),
    ],
)
def test_suggested_layer(name: str, side: int, path: str, layout: str, prefix: int, grid: tuple[int, int]) -> None:
    options = {"init_weights": False} if name in ("inception_v3", "googlenet") else {}
    proposals = propose_layers(on_meta(name, **options), (3, side, side))
    first = proposals[0]
    assert (first.path, first.layout, first.prefix_tokens, first.grid) == (path, layout, prefix, grid)
    assert [proposal.rank for proposal in proposals] == list(range(1, len(proposals) + 1))
    assert f"{grid[0]}x{grid[1]}" in first.reason
    assert len({proposal.path for proposal in proposals}) == len(proposals) <= 8


def test_one_layer_for_each_resolution() -> None:
    proposals = propose_layers(on_meta("resnet18"), (3, 224, 320))
    assert [(p.path, p.grid) for p in proposals[:4]] == [
        ("layer4", (7, 10)),
        ("layer3", (14, 20)),
        ("layer2", (28, 40)),
        ("layer1", (56, 80)),
    ]


def test_tables_that_do_not_depend_on_the_picture_are_no_maps() -> None:
    """Swin v2 computes its 15x15 table of relative positions in a module of its own."""
    proposals = propose_layers(on_meta("swin_v2_t"), (3, 256, 256))
    assert [proposal.grid for proposal in proposals] == [(8, 8), (16, 16), (32, 32), (64, 64)]


def test_too_coarse_maps_are_said_to_be() -> None:
    first, second, *_ = propose_layers(on_meta("resnet18"), (3, 64, 64))
    assert "layer4 behind it has only 2x2" in first.reason
    assert (second.path, second.grid) == ("layer4", (2, 2))


class Block(nn.Module):
    """A pre-norm transformer block, with heads kept as timm keeps them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Vit(nn.Module):
    """prefix: class and register tokens before the patches; 0 pools the patches instead."""

    def __init__(self, prefix: int, classes: int = 3) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 8, stride=8)
        self.tokens = nn.Parameter(torch.randn(1, prefix, 8))
        self.prefix = prefix
        self.blocks = nn.Sequential(Block(8), Block(8))
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.tokens.expand(len(x), -1, -1), x], dim=1)
        x = self.norm(self.blocks(x))
        return self.head(x[:, 0] if self.prefix else x.mean(dim=1))


@pytest.mark.parametrize("prefix", [0, 1, 2, 5])
def test_prefix_tokens_and_grids_that_are_not_square(prefix: int) -> None:
    first, second, *_ = propose_layers(Vit(prefix), (3, 32, 56))
    expected = ("blocks.1.norm1", "blocks.0.norm1") if prefix else ("norm", "blocks.1")
    assert (first.path, first.prefix_tokens, first.grid) == (expected[0], prefix, (4, 7))
    assert first.shape == (prefix + 28, 8)
    assert second.path == expected[1]


def test_nothing_is_touched_and_no_weight_is_read() -> None:
    torch.manual_seed(0)
    model = Vit(1).train()
    calls: list[int] = []
    model.norm.register_forward_hook(lambda *_: calls.append(1))
    random = torch.get_rng_state()
    seen = trace(model, (3, 32, 32))
    assert seen.on_meta
    assert seen.classes == 3
    assert not calls, "the caller's hooks are not called by a trace"
    assert torch.equal(random, torch.get_rng_state())
    assert all(module.training for module in model.modules())
    assert all(not module._forward_hooks for module in model.modules() if module is not model.norm)
    assert all(parameter.device.type == "cpu" for parameter in model.parameters())


class Peeking(nn.Module):
    """Looks at a value, which does not exist on meta."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        if float(x.sum()) > 1e9:
            x = -x
        return self.head(x.mean(dim=(2, 3)))


def test_a_model_that_looks_at_values_is_run_for_real() -> None:
    model = Peeking().train()
    assert not trace(model, (3, 20, 28)).on_meta
    (only,) = propose_layers(model, (3, 20, 28))
    assert (only.path, only.grid) == ("conv", (10, 14))
    assert model.training
    assert not model.conv._forward_hooks


def test_no_map_at_all() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 5), nn.ReLU(), nn.Linear(5, 2))
    with pytest.raises(LayerNotSpatial, match=r"No layer of this model puts out a map larger than one cell.*3x4x4"):
        propose_layers(model, (3, 4, 4))


def test_wrong_input_is_told_in_torchs_words() -> None:
    with pytest.raises(ExplainError, match=r"does not accept an input of 1x64x64: .*3 channels"):
        propose_layers(torchvision.models.resnet18(weights=None), (1, 64, 64))


def test_layers_asked_for_by_name() -> None:
    model = on_meta("resnet18")
    shape = (3, 224, 224)
    assert find_layer(model, "layer4", shape).rank == 1
    inner = find_layer(model, "layer3.0.conv1", shape)
    assert (inner.rank, inner.grid, inner.layout) == (0, (14, 14), "NCHW")
    assert find_layer(model, "module.layer2", shape).path == "layer2"
    assert find_layer(model, "layer1.0.relu", shape).call == 1
    assert find_layer(model, "layer1.0.relu:0", shape).call == 0
    with pytest.raises(NoSuchLayer, match=r"no layer 'layer5'.*Close: layer4"):
        find_layer(model, "layer5", shape)
    with pytest.raises(NoSuchLayer, match="called 2 times; there is no call 7"):
        find_layer(model, "layer1.0.relu:7", shape)
    with pytest.raises(LayerNotSpatial, match="'fc' puts out 1000 for each picture"):
        find_layer(model, "fc", shape)
    vit = on_meta("vit_b_16")
    with pytest.raises(LayerNotSpatial, match="is not called by the forward pass"):
        find_layer(vit, "encoder.layers.encoder_layer_0.self_attention.out_proj", shape)


@pytest.mark.parametrize(
    ("name", "size", "suggested"),
    [
        ("lraspp_mobilenet_v3_large", 128, "classifier.cbr"),
        ("fcn_resnet50", 128, "backbone"),
        ("fasterrcnn_mobilenet_v3_large_320_fpn", 160, "backbone.body.16"),
        ("retinanet_resnet50_fpn", 160, "backbone.body.layer4"),
        ("ssdlite320_mobilenet_v3_large", 320, "backbone.features.1"),
    ],
)
def test_segmentation_and_detection(name: str, size: int, suggested: str) -> None:
    """Not the scores themselves, and not one of several heads."""
    model = torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=4).eval()
    assert propose_layers(model, (3, size, size))[0].path == suggested


def test_a_network_of_one_resolution_has_its_earlier_blocks_proposed() -> None:
    # ConvMixer (Trockman 2022) keeps the grid of its patches, and one layer alone was offered.
    def residual() -> nn.Module:
        class Residual(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.fn = nn.Sequential(nn.Conv2d(16, 16, 3, groups=16, padding=1), nn.GELU(), nn.BatchNorm2d(16))

            def forward(self, x: Tensor) -> Tensor:
                return self.fn(x) + x

        return nn.Sequential(Residual(), nn.Conv2d(16, 16, 1), nn.GELU(), nn.BatchNorm2d(16))

    torch.manual_seed(0)
    stem = [nn.Conv2d(3, 16, 4, 4), nn.GELU(), nn.BatchNorm2d(16)]
    blocks = [residual() for _ in range(4)]
    model = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)).eval()
    layers = propose_layers(model, (3, 32, 32))
    assert [layer.path for layer in layers] == ["6", "5", "4", "3"]
    assert layers[1].reason == "The map of an earlier step, 8x8: knows less about the class."
