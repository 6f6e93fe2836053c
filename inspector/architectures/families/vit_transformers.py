"""ViT and DeiT, as transformers before 5 names them, which is how published files are spelled."""

from __future__ import annotations

from inspector.architectures.families.entry import Family, Optional, Part, Repeat, Row
from inspector.architectures.families.rows import conv, linear, norm
from inspector.architectures.families.usual import epsilon, heads, linear_if

LAYER = "@encoder.layer.{i}"


def model(*, distilled: bool) -> tuple[Part, ...]:
    """The trunk with its embeddings and pooler."""
    second = (Row("@embeddings.distillation_token", (1, 1, "hidden")),) if distilled else ()
    return (
        Row("@embeddings.cls_token", (1, 1, "hidden")),
        *second,
        Optional("mask_token", (Row("@embeddings.mask_token", (1, 1, "hidden")),)),
        Row("@embeddings.position_embeddings", (1, "positions", "hidden")),
        *conv("@embeddings.patch_embeddings.projection", "hidden", "in_channels", "patch", bias=True),
        Repeat(
            "i",
            "layers",
            (
                *linear_if(f"{LAYER}.attention.attention.query", "hidden", "hidden", "attention_bias"),
                *linear_if(f"{LAYER}.attention.attention.key", "hidden", "hidden", "attention_bias"),
                *linear_if(f"{LAYER}.attention.attention.value", "hidden", "hidden", "attention_bias"),
                *linear(f"{LAYER}.attention.output.dense", "hidden", "hidden"),
                *linear(f"{LAYER}.intermediate.dense", "mlp", "hidden"),
                *linear(f"{LAYER}.output.dense", "hidden", "mlp"),
                *norm(f"{LAYER}.layernorm_before", "hidden"),
                *norm(f"{LAYER}.layernorm_after", "hidden"),
            ),
        ),
        *norm("@layernorm", "hidden"),
        Optional("pooler", linear("@pooler.dense", "hidden", "hidden")),
    )


ANCHORS = ("@encoder.layer.{i}.attention.attention.query.weight", "@encoder.layer.{i}.layernorm_before.weight")
SUMMARY = "{layers} layers, hidden {hidden}, patches of {patch} pixels, {positions} positions"

FAMILY = Family(
    library="transformers",
    name="vit",
    title="a vision transformer in transformers' names",
    summary=SUMMARY,
    base="vit.",
    anchors=ANCHORS,
    source="transformers 4.57, models/vit/modeling_vit.py",
    stated=("vit",),
    rows=(*model(distilled=False), Optional("classifier", linear("classifier", "num_classes", "hidden"))),
    assumes=(
        heads("attention heads of ViT are 64 wide", "num_attention_heads"),
        epsilon(1e-12, "transformers' ViT", "layer_norm_eps"),
    ),
)

DEIT = Family(
    library="transformers",
    name="deit",
    title="a DeiT in transformers' names",
    summary=SUMMARY,
    base="deit.",
    anchors=ANCHORS,
    source="transformers 4.57, models/deit/modeling_deit.py",
    stated=("deit",),
    rows=(
        *model(distilled=True),
        Optional("classifier", linear("classifier", "num_classes", "hidden")),
        Optional("teacher", linear("cls_classifier", "num_classes", "hidden")),
        Optional("student", linear("distillation_classifier", "num_classes", "hidden")),
    ),
    assumes=(
        heads("attention heads of DeiT are 64 wide", "num_attention_heads"),
        epsilon(1e-12, "transformers' DeiT", "layer_norm_eps"),
    ),
)

FAMILIES = (FAMILY, DEIT)
