"""Vision transformers by torchvision's names, with other depths, widths and patches."""

from math import isqrt

from inspector.architectures.families.entry import Assume, Family, Repeat, Row, Settings
from inspector.architectures.families.rows import conv, linear, norm

LAYER = "encoder.layers.encoder_layer_{i}"


def side(settings: Settings) -> int:
    """Pixels of the picture's side: patches come one per position, but for the class token's."""
    positions, patch = settings.get("positions"), settings.get("patch")
    if not isinstance(positions, int) or not isinstance(patch, int):
        return 224
    return isqrt(max(1, positions - 1)) * patch


FAMILY = Family(
    library="torchvision",
    name="vit",
    title="a vision transformer",
    summary="{layers} layers of width {hidden}, patches of {patch} pixels, {num_classes} classes",
    anchors=("encoder.layers.encoder_layer_{i}.self_attention.in_proj_weight", "conv_proj.weight"),
    source="torchvision 0.24, models/vision_transformer.py",
    rows=(
        Row("class_token", (1, 1, "hidden")),
        *conv("conv_proj", "hidden", "in_channels", "patch", bias=True),
        Row("encoder.pos_embedding", (1, "positions", "hidden")),
        Repeat(
            "i",
            "layers",
            (
                *norm(f"{LAYER}.ln_1", "hidden"),
                Row(f"{LAYER}.self_attention.in_proj_weight", ("3*hidden", "hidden")),
                Row(f"{LAYER}.self_attention.in_proj_bias", ("3*hidden",)),
                *linear(f"{LAYER}.self_attention.out_proj", "hidden", "hidden"),
                *norm(f"{LAYER}.ln_2", "hidden"),
                *linear(f"{LAYER}.mlp.0", "mlp", "hidden"),
                *linear(f"{LAYER}.mlp.3", "hidden", "mlp"),
            ),
        ),
        *norm("encoder.ln", "hidden"),
        *linear("heads.head", "num_classes", "hidden"),
    ),
    assumes=(
        Assume(
            "heads",
            lambda s: max(1, int(str(s.get("hidden", 64))) // 64),
            "heads of a vision transformer are 64 wide, but for the largest",
            stated=("num_heads", "num_attention_heads", "heads"),
            fits=lambda s, value: isinstance(value, int) and int(str(s.get("hidden", 0))) % value == 0,
        ),
    ),
    task="classification",
    image_size=side,
    builder="inspector.architectures.families.builders.torchvision_models:build_vit",
)
