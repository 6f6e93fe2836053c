"""Vision transformers by the names of timm, DeiT and DINO: "blocks.{i}.attn.qkv", any depth, width and patch."""

from math import isqrt

from inspector.architectures.families.entry import Assume, Family, Optional, Repeat, Row, Settings
from inspector.architectures.families.rows import bias_of, conv, linear, norm

BLOCK = "blocks.{i}"


def side(settings: Settings) -> int:
    """Pixels of the picture's side; some positions may be those of the class and other tokens."""
    positions, patch = settings.get("positions"), settings.get("patch")
    if not isinstance(positions, int) or not isinstance(patch, int):
        return 224
    return isqrt(positions) * patch


FAMILY = Family(
    library="timm",
    name="vit",
    title="a vision transformer",
    summary="{layers} layers of width {hidden}, patches of {patch} pixels",
    anchors=("blocks.{i}.attn.qkv.weight", "blocks.{i}.mlp.fc2.weight", "patch_embed.proj.weight", "pos_embed"),
    source="timm 1.0, models/vision_transformer.py; facebookresearch/dino and dinov2, vision_transformer.py",
    rows=(
        Optional("class_token", (Row("cls_token", (1, 1, "hidden")),)),
        Optional("registers", (Row("reg_token", (1, "reg_tokens", "hidden")),)),
        Row("pos_embed", (1, "positions", "hidden")),
        Optional("register_tokens", (Row("register_tokens", (1, "registers_dino", "hidden")),)),
        Optional("mask_token", (Row("mask_token", (1, "hidden")),)),
        Optional("distilled", (Row("dist_token", (1, 1, "hidden")),)),
        *conv("patch_embed.proj", "hidden", "in_channels", "patch"),
        Optional("patch_bias", bias_of("patch_embed.proj", "hidden")),
        Optional("norm_pre", norm("norm_pre", "hidden")),
        Repeat(
            "i",
            "layers",
            (
                *norm(f"{BLOCK}.norm1", "hidden"),
                Row(f"{BLOCK}.attn.qkv.weight", ("3*hidden", "hidden")),
                Optional("qkv_bias", bias_of(f"{BLOCK}.attn.qkv", "3*hidden")),
                Optional(
                    "qk_norm",
                    (*norm(f"{BLOCK}.attn.q_norm", "head_width"), *norm(f"{BLOCK}.attn.k_norm", "head_width")),
                ),
                *linear(f"{BLOCK}.attn.proj", "hidden", "hidden"),
                Optional("layer_scale", (Row(f"{BLOCK}.ls1.gamma", ("hidden",)),)),
                *norm(f"{BLOCK}.norm2", "hidden"),
                *linear(f"{BLOCK}.mlp.fc1", "mlp", "hidden"),
                *linear(f"{BLOCK}.mlp.fc2", "hidden", "mlp"),
                Optional("layer_scale", (Row(f"{BLOCK}.ls2.gamma", ("hidden",)),)),
            ),
        ),
        Optional("norm", norm("norm", "hidden")),
        Optional("fc_norm", norm("fc_norm", "hidden")),
        Optional("head", linear("head", "num_classes", "hidden")),
        Optional("head_dist", linear("head_dist", "num_classes", "hidden")),
    ),
    assumes=(
        Assume(
            "heads",
            lambda s: max(1, int(str(s.get("hidden", 64))) // 64),
            "heads of a vision transformer are 64 wide, but for the largest",
            stated=("num_heads", "num_attention_heads", "heads"),
            when=lambda s: "head_width" not in s,
            fits=lambda s, value: isinstance(value, int) and int(str(s.get("hidden", 0))) % value == 0,
        ),
    ),
    task="classification",
    image_size=side,
    builder="inspector.architectures.families.builders.timm_models:build_vit",
)
