"""CLIP, as transformers names it: both towers, or one of them alone."""

from inspector.architectures.families.clip_rows import text_tower, vision_tower
from inspector.architectures.families.entry import Family, Optional, Row
from inspector.architectures.families.usual import activation, heads

SOURCE = "transformers 4.57, models/clip/modeling_clip.py"

FAMILY = Family(
    library="transformers",
    name="clip",
    title="a CLIP of text and vision encoder",
    summary="text: {text_layers} layers, hidden {text_hidden}, vocabulary {text_vocab}; vision: {vision_layers} "
    "layers, hidden {vision_hidden}, patches of {vision_patch} pixels; both projected to {projection}",
    anchors=(
        "text_model.encoder.layers.{t}.self_attn.q_proj.weight",
        "vision_model.encoder.layers.{v}.self_attn.q_proj.weight",
    ),
    source=SOURCE,
    stated=("clip",),
    rows=(
        Row("logit_scale", ()),
        *text_tower(symbols="text_"),
        *vision_tower(symbols="vision_"),
        Row("visual_projection.weight", ("projection", "vision_hidden")),
        Row("text_projection.weight", ("projection", "text_hidden")),
    ),
    assumes=(
        heads("attention heads of CLIP are 64 wide", name="text_heads", of="text_hidden"),
        heads("attention heads of CLIP are 64 wide", name="vision_heads", of="vision_hidden"),
        activation("quick_gelu", "OpenAI's CLIP", "hidden_act"),
    ),
)

TEXT = Family(
    library="transformers",
    name="clip_text",
    title="a CLIP text encoder",
    summary="{layers} layers, hidden {hidden}, vocabulary {vocab}, {positions} positions",
    base="text_model.",
    anchors=("@encoder.layers.{i}.self_attn.q_proj.weight", "@encoder.layers.{i}.layer_norm1.weight"),
    source=SOURCE,
    stated=("clip_text_model",),
    rows=(
        *text_tower("@"),
        Optional("projected", (Row("text_projection.weight", ("projection", "hidden")),)),
    ),
    assumes=(
        heads("attention heads of CLIP are 64 wide", "num_attention_heads"),
        activation("quick_gelu", "OpenAI's CLIP", "hidden_act"),
    ),
)

VISION = Family(
    library="transformers",
    name="clip_vision",
    title="a CLIP vision encoder",
    summary="{layers} layers, hidden {hidden}, patches of {patch} pixels",
    base="vision_model.",
    anchors=("@encoder.layers.{i}.self_attn.q_proj.weight", "@encoder.layers.{i}.layer_norm1.weight"),
    source=SOURCE,
    stated=("clip_vision_model",),
    rows=(
        *vision_tower("@"),
        Optional("projected", (Row("visual_projection.weight", ("projection", "hidden")),)),
    ),
    assumes=(
        heads("attention heads of CLIP are 64 wide", "num_attention_heads"),
        activation("quick_gelu", "OpenAI's CLIP", "hidden_act"),
    ),
)

FAMILIES = (FAMILY, TEXT, VISION)
