"""Hugging Face's vision models beside timm's and torchvision's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from benchmarks.conversions.sides import Pair, Side, picture

TIMM, TORCHVISION, HF = "timm", "torchvision", "transformers"
_EPSILON = "epsilon of the norms"
_FUSED = ("fused-attention",)


def epsilon(model: nn.Module, value: float = 1e-6) -> nn.Module:
    """The norms' epsilon, which no file holds, in every norm of a network; in evaluation mode."""
    for module in model.modules():
        for name in ("eps", "epsilon", "variance_epsilon"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, value)
    return model.eval()


def timm_model(name: str, **options: Any) -> Any:
    def build() -> nn.Module:
        import timm

        return epsilon(timm.create_model(name, pretrained=False, **options))

    return build


def hf(name: str, config: str, **options: Any) -> Any:
    def build() -> nn.Module:
        import transformers

        settings = getattr(transformers, config)(**options)
        return epsilon(getattr(transformers, name)(settings))

    return build


def hf_pixels(model: Any, x: Any) -> Any:
    return model(pixel_values=x).logits


_VIT = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 192}
_VIT_TIMM = {"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 3, "num_heads": 4, "num_classes": 7}


def hf_vit() -> Side:
    build = hf("ViTForImageClassification", "ViTConfig", image_size=32, patch_size=8, num_labels=7, **_VIT)
    return Side(library=HF, build=build, run=hf_pixels)


def timm_vit(**options: Any) -> Side:
    return Side(library=TIMM, build=timm_model("vit_base_patch16_224", **(_VIT_TIMM | options)))


def torchvision_vit() -> Side:
    def build() -> nn.Module:
        from torchvision.models import VisionTransformer

        return epsilon(
            VisionTransformer(
                image_size=32, patch_size=8, num_layers=3, num_heads=4, hidden_dim=48, mlp_dim=192, num_classes=7
            )
        )

    return Side(library=TORCHVISION, build=build)


def _deit() -> Pair:
    def run(model: Any, x: Any) -> Any:
        return model(x)  # in evaluation timm averages its two heads, as transformers' class does

    return Pair(
        id="DeiT, distilled",
        ours=Side(
            library=HF,
            build=hf(
                "DeiTForImageClassificationWithTeacher",
                "DeiTConfig",
                image_size=32,
                patch_size=8,
                num_labels=7,
                **_VIT,
            ),
            run=hf_pixels,
        ),
        theirs=Side(library=TIMM, build=timm_model("deit_base_distilled_patch16_224", **_VIT_TIMM), run=run),
        input=picture(32),
        accept=_FUSED,
        same=_EPSILON,
    )


def _swin_hf() -> Side:
    build = hf(
        "SwinForImageClassification",
        "SwinConfig",
        image_size=64,
        patch_size=4,
        embed_dim=24,
        depths=[2, 2, 2],
        num_heads=[2, 4, 8],
        window_size=4,
        num_labels=7,
        drop_path_rate=0.0,
    )
    return Side(library=HF, build=build, run=hf_pixels)


def _swin_timm() -> Side:
    return Side(
        library=TIMM,
        build=timm_model(
            "swin_tiny_patch4_window7_224",
            img_size=64,
            embed_dim=24,
            depths=(2, 2, 2),
            num_heads=(2, 4, 8),
            window_size=4,
            num_classes=7,
        ),
    )


def _swin_torchvision() -> Side:
    def build() -> nn.Module:
        from torchvision.models import SwinTransformer

        return epsilon(
            SwinTransformer(
                patch_size=[4, 4],
                embed_dim=24,
                depths=[2, 2, 2],
                num_heads=[2, 4, 8],
                window_size=[4, 4],
                num_classes=7,
            )
        )

    return Side(library=TORCHVISION, build=build)


def hf_resnet(deep: bool) -> Side:
    """ResNet-50 or ResNet-18."""
    build = hf(
        "ResNetForImageClassification",
        "ResNetConfig",
        hidden_sizes=[256, 512, 1024, 2048] if deep else [64, 128, 256, 512],
        depths=[3, 4, 6, 3] if deep else [2, 2, 2, 2],
        layer_type="bottleneck" if deep else "basic",
        num_labels=7,
    )
    return Side(library=HF, build=build, run=hf_pixels)


def torchvision_model(name: str, **options: Any) -> Any:
    def build() -> nn.Module:
        from torchvision import models

        return epsilon(models.get_model(name, weights=None, **options))

    return build


def torchvision_resnet(deep: bool) -> Side:
    return Side(library=TORCHVISION, build=torchvision_model("resnet50" if deep else "resnet18", num_classes=7))


def timm_resnet(deep: bool) -> Side:
    return Side(library=TIMM, build=timm_model("resnet50" if deep else "resnet18", num_classes=7))


def _convnexts() -> tuple[Side, Side, Side]:
    ours = Side(
        library=HF,
        build=hf(
            "ConvNextForImageClassification",
            "ConvNextConfig",
            hidden_sizes=[8, 16, 32, 64],
            depths=[1, 1, 3, 1],
            num_labels=7,
        ),
        run=hf_pixels,
    )
    timms = Side(
        library=TIMM,
        build=timm_model("convnext_tiny", dims=(8, 16, 32, 64), depths=(1, 1, 3, 1), num_classes=7),
    )

    def build() -> nn.Module:
        from torchvision.models.convnext import CNBlockConfig, ConvNeXt

        blocks = [
            CNBlockConfig(8, 16, 1),
            CNBlockConfig(16, 32, 1),
            CNBlockConfig(32, 64, 3),
            CNBlockConfig(64, None, 1),
        ]
        return epsilon(ConvNeXt(blocks, num_classes=7))

    return ours, timms, Side(library=TORCHVISION, build=build)


def pairs() -> Iterator[Pair]:
    small = {"input": picture(32), "accept": _FUSED, "same": _EPSILON}
    yield Pair(id="ViT", ours=hf_vit(), theirs=timm_vit(), **small)
    yield Pair(id="ViT", ours=hf_vit(), theirs=torchvision_vit(), **small)
    yield Pair(id="ViT", ours=timm_vit(), theirs=torchvision_vit(), **small)
    yield _deit()
    large = {"input": picture(64), "accept": _FUSED, "same": _EPSILON}
    yield Pair(id="Swin", ours=_swin_hf(), theirs=_swin_timm(), **large)
    yield Pair(id="Swin", ours=_swin_hf(), theirs=_swin_torchvision(), **large)
    yield Pair(id="Swin", ours=_swin_timm(), theirs=_swin_torchvision(), **large)
    for deep in (False, True):
        name = "ResNet-50" if deep else "ResNet-18"
        yield Pair(id=name, ours=hf_resnet(deep), theirs=timm_resnet(deep), **large)
        yield Pair(id=name, ours=hf_resnet(deep), theirs=torchvision_resnet(deep), **large)
        yield Pair(id=name, ours=timm_resnet(deep), theirs=torchvision_resnet(deep), **large)
    one, two, three = _convnexts()
    for a, b in ((one, two), (one, three), (two, three)):
        yield Pair(id="ConvNeXt", ours=a, theirs=b, **large)
