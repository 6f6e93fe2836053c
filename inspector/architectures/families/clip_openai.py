"""CLIP in OpenAI's names, which open_clip kept: both towers, or the text model alone as in Stable Diffusion 2."""

from inspector.architectures.families.clip_rows import openai_text, resblocks
from inspector.architectures.families.entry import Family, Optional, Row
from inspector.architectures.families.rows import norm
from inspector.architectures.families.usual import activation, heads

SOURCE = "openai/CLIP, clip/model.py; mlfoundations/open_clip, src/open_clip/model.py"
VISUAL = (
    Row("visual.class_embedding", ("vision_hidden",)),
    Row("visual.positional_embedding", ("vision_positions", "vision_hidden")),
    Row("visual.proj", ("vision_hidden", "projection")),
    Row("visual.conv1.weight", ("vision_hidden", "in_channels", "vision_patch", "vision_patch")),
    *norm("visual.ln_pre", "vision_hidden"),
    resblocks("visual.transformer", "v", "vision_layers", "vision_hidden", "vision_mlp"),
    *norm("visual.ln_post", "vision_hidden"),
)

FAMILY = Family(
    library="openai",
    name="clip",
    title="a CLIP with a vision transformer, in OpenAI's names",
    summary="text: {layers} layers, hidden {hidden}, vocabulary {vocab}; vision: {vision_layers} layers, hidden "
    "{vision_hidden}, patches of {vision_patch} pixels; both projected to {projection}",
    anchors=("visual.transformer.resblocks.{v}.attn.in_proj_weight", "transformer.resblocks.{i}.attn.in_proj_weight"),
    source=SOURCE,
    rows=(
        *openai_text(visual=VISUAL),
        # Numbers that OpenAI's TorchScript files carry beside the weights.
        Optional(
            "scripted",
            (Row("input_resolution", (), "int64"), Row("context_length", (), "int64"), Row("vocab_size", (), "int64")),
        ),
    ),
    assumes=(
        heads("attention heads of CLIP are 64 wide"),
        heads("attention heads of CLIP are 64 wide", name="vision_heads", of="vision_hidden"),
        activation("quick_gelu", "OpenAI's CLIP"),
    ),
)

TEXT = Family(
    library="openai",
    name="clip_text",
    title="a CLIP text encoder in OpenAI's names",
    summary="{layers} layers, hidden {hidden}, vocabulary {vocab}, {positions} positions",
    anchors=("transformer.resblocks.{i}.attn.in_proj_weight", "transformer.resblocks.{i}.mlp.c_fc.weight"),
    source=SOURCE,
    rows=openai_text(),
    assumes=(heads("attention heads of CLIP are 64 wide"), activation("gelu", "open_clip")),
)

FAMILIES = (FAMILY, TEXT)
