"""torchvision's other families beside timm's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from benchmarks.conversions.pairs.hf_vision import TIMM, TORCHVISION, timm_model, torchvision_model
from benchmarks.conversions.sides import Pair, Side, picture
from benchmarks.conversions.weights import randomise

# The first block's convolution beside its pooling has no counterpart in timm where it does not widen, it pools 3x3 and
# timm 2x2, the head's last layer has no bias, and timm's stem has one more.
_MAXVIT = "torchvision's MaxViT has other layers than timm's: its shortcuts, their pooling and the biases of its ends"


def _two(
    name: str,
    ours: str,
    theirs: str,
    size: int = 64,
    same: str = "epsilon of the norms",
    impossible: str = "",
    **options: Any,
) -> Pair:
    return Pair(
        id=name,
        ours=Side(library=TORCHVISION, build=torchvision_model(ours, num_classes=7)),
        theirs=Side(library=TIMM, build=timm_model(theirs, num_classes=7, **options)),
        input=picture(size),
        accept=("same-order",),
        same=same,
        impossible=impossible,
    )


def _swin_v2() -> Pair:
    def build() -> nn.Module:
        from torchvision.models.swin_transformer import PatchMergingV2, SwinTransformer, SwinTransformerBlockV2

        from benchmarks.conversions.pairs.hf_vision import epsilon

        return epsilon(
            SwinTransformer(
                patch_size=[4, 4],
                embed_dim=24,
                depths=[2, 2, 2],
                num_heads=[2, 4, 8],
                window_size=[4, 4],
                num_classes=7,
                block=SwinTransformerBlockV2,
                downsample_layer=PatchMergingV2,
            )
        )

    # The network itself takes the key's bias as zero, whatever number stands there.
    def randomised(model: Any, seed: int) -> None:
        randomise(model, seed, ("relative_coords_table",))
        with torch.no_grad():
            for name, bias in model.named_parameters():
                if name.endswith("qkv.bias"):
                    width = len(bias) // 3
                    bias[width : 2 * width] = 0

    theirs = timm_model(
        "swinv2_tiny_window8_256",
        img_size=64,
        embed_dim=24,
        depths=(2, 2, 2),
        num_heads=(2, 4, 8),
        window_size=4,
        num_classes=7,
    )
    return Pair(
        id="Swin v2",
        ours=Side(library=TORCHVISION, build=build, randomise=randomised),
        theirs=Side(library=TIMM, build=theirs, fixed=("relative_coords_table",)),
        input=picture(64),
        accept=("query-value-bias",),
        same="epsilon of the norms",
    )


def pairs() -> Iterator[Pair]:
    yield _swin_v2()
    yield _two("MobileNet v2", "mobilenet_v2", "mobilenetv2_100")
    yield _two("EfficientNet v2-S", "efficientnet_v2_s", "efficientnetv2_s")
    yield _two("MobileNet v3 large", "mobilenet_v3_large", "mobilenetv3_large_100")
    yield _two("RegNetY 400MF", "regnet_y_400mf", "regnety_004")
    yield _two("RegNetX 400MF", "regnet_x_400mf", "regnetx_004_tv")
    yield _two("MaxViT-T", "maxvit_t", "maxvit_tiny_tf_224", 224, impossible=_MAXVIT, img_size=224)
    yield _two("EfficientNet-B0", "efficientnet_b0", "efficientnet_b0")
    yield _two("DenseNet-121", "densenet121", "densenet121")
    yield _two("VGG-11", "vgg11_bn", "vgg11_bn", 224)
