"""Swin transformers of any size, by the original repository's names and by timm's, which has the merging first."""

from inspector.architectures.families.entry import Family, Optional, Part, Repeat, Row, When
from inspector.architectures.families.rows import conv, linear, norm

BLOCK = "layers.{s}.blocks.{b}"
SUMMARY = "{blocks} blocks per stage, widths {width}, {heads} heads, {num_classes} classes"
# Masks and indices follow from the picture's size; files keep them or not.
MASK = Optional("masks[s]", (When("b % 2 == 1", (Row(f"{BLOCK}.attn_mask", ("windows[s]", "area", "area")),)),))
INDEX = Optional("indices", (Row(f"{BLOCK}.attn.relative_position_index", ("area", "area"), "int64", is_buffer=True),))
BLOCKS = Repeat(
    "b",
    "blocks[s]",
    (
        MASK,
        *norm(f"{BLOCK}.norm1", "width[s]"),
        Row(f"{BLOCK}.attn.relative_position_bias_table", ("table", "heads[s]")),
        INDEX,
        *linear(f"{BLOCK}.attn.qkv", "3*width[s]", "width[s]"),
        *linear(f"{BLOCK}.attn.proj", "width[s]", "width[s]"),
        *norm(f"{BLOCK}.norm2", "width[s]"),
        *linear(f"{BLOCK}.mlp.fc1", "mlp[s]", "width[s]"),
        *linear(f"{BLOCK}.mlp.fc2", "width[s]", "mlp[s]"),
    ),
)
STEM: tuple[Part, ...] = (
    *conv("patch_embed.proj", "width[0]", "in_channels", "patch", bias=True),
    *norm("patch_embed.norm", "width[0]"),
)


def _merging(width: str) -> tuple[Part, ...]:
    return (
        *norm("layers.{s}.downsample.norm", f"4*{width}"),
        Row("layers.{s}.downsample.reduction.weight", (f"2*{width}", f"4*{width}")),
    )


# timm's merging begins with its norm, the original's ends with it.
def _merging_originally(width: str) -> tuple[Part, ...]:
    return (
        Row("layers.{s}.downsample.reduction.weight", (f"2*{width}", f"4*{width}")),
        *norm("layers.{s}.downsample.norm", f"4*{width}"),
    )


ANCHORS = (
    "layers.{s}.blocks.{b}.attn.relative_position_bias_table",
    "patch_embed.proj.weight",
    "layers.{s}.downsample.reduction.weight",
)

ORIGINAL = Family(
    library="microsoft",
    name="swin",
    title="a Swin transformer",
    summary=SUMMARY,
    anchors=(*ANCHORS, "head.weight"),
    source="microsoft/Swin-Transformer, models/swin_transformer.py",
    rows=(
        *STEM,
        Repeat("s", "stages", (BLOCKS, When("s < stages-1", _merging_originally("width[s]")))),
        *norm("norm", "width[stages-1]"),
        *linear("head", "num_classes", "width[stages-1]"),
    ),
    task="classification",
)

TIMM = Family(
    library="timm",
    name="swin",
    title="a Swin transformer",
    summary=SUMMARY,
    anchors=(*ANCHORS, "head.fc.weight"),
    source="timm 1.0, models/swin_transformer.py",
    rows=(
        *STEM,
        Repeat("s", "stages", (When("s > 0", _merging("width[s-1]")), BLOCKS)),
        *norm("norm", "width[stages-1]"),
        *linear("head.fc", "num_classes", "width[stages-1]"),
    ),
    task="classification",
)
