"""timm's own classes with arguments that were solved from a file, where timm is installed."""

from __future__ import annotations

from math import isqrt
from typing import Any

from inspector.errors import MissingLibrary

# Of these the constructor below knows nothing: DINOv2's own tokens, DeiT's second head.
ELSEWHERE = ("register_tokens", "mask_token", "distilled", "head_dist")


def build_vit(settings: dict[str, Any]) -> Any:
    """VisionTransformer. Raises MissingLibrary without timm, ValueError for parts that timm's class has not."""
    try:
        from timm.models.vision_transformer import VisionTransformer
    except ImportError as error:
        raise MissingLibrary(
            "Building a vision transformer of timm's names needs timm, which is not installed.",
            hint="pip install timm",
        ) from error
    foreign = [name for name in ELSEWHERE if settings.get(name)]
    if foreign:
        raise ValueError(f"timm's class has no {foreign[0]}")
    hidden, patch = settings["hidden"], settings["patch"]
    tokens = settings["class_token"] + (settings["reg_tokens"] if settings["registers"] else 0)
    # Whether the tokens have positions of their own shows in what is left being a square.
    placed = next((n for n in (tokens, 0) if isqrt(settings["positions"] - n) ** 2 == settings["positions"] - n), None)
    if placed is None:
        raise ValueError(f"{settings['positions']} positions are no square of patches")
    return VisionTransformer(
        img_size=isqrt(settings["positions"] - placed) * patch,
        patch_size=patch,
        in_chans=settings["in_channels"],
        num_classes=settings["num_classes"] if settings["head"] else 0,
        global_pool="avg" if settings["fc_norm"] or not settings["class_token"] else "token",
        embed_dim=hidden,
        depth=settings["layers"],
        num_heads=settings.get("heads") or hidden // settings["head_width"],
        mlp_ratio=settings["mlp"] / hidden,
        qkv_bias=settings["qkv_bias"],
        qk_norm=settings["qk_norm"],
        init_values=1e-5 if settings["layer_scale"] else None,
        class_token=settings["class_token"],
        no_embed_class=placed == 0 and tokens > 0,
        reg_tokens=settings["reg_tokens"] if settings["registers"] else 0,
        pre_norm=settings["norm_pre"],
        fc_norm=settings["fc_norm"] or None,
    )
