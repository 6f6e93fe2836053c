"""Whisper, as transformers names it; a model for sound classes has the encoder alone."""

from __future__ import annotations

from inspector.architectures.families.entry import Family, Optional, Part, Repeat, Row
from inspector.architectures.families.rows import linear, norm
from inspector.architectures.families.usual import heads


def attention(name: str) -> tuple[Part, ...]:
    """Key, value, query and output; the keys have no bias."""
    return (
        Row(f"{name}.k_proj.weight", ("hidden", "hidden")),
        *linear(f"{name}.v_proj", "hidden", "hidden"),
        *linear(f"{name}.q_proj", "hidden", "hidden"),
        *linear(f"{name}.out_proj", "hidden", "hidden"),
    )


def layer(name: str, mlp: str, *, cross: bool) -> tuple[Part, ...]:
    """One layer of either side."""
    crossing = (*attention(f"{name}.encoder_attn"), *norm(f"{name}.encoder_attn_layer_norm", "hidden"))
    return (
        *attention(f"{name}.self_attn"),
        *norm(f"{name}.self_attn_layer_norm", "hidden"),
        *(crossing if cross else ()),
        *linear(f"{name}.fc1", mlp, "hidden"),
        *linear(f"{name}.fc2", "hidden", mlp),
        *norm(f"{name}.final_layer_norm", "hidden"),
    )


FAMILY = Family(
    library="transformers",
    name="whisper",
    title="a Whisper",
    summary="{layers} encoder layers, {decoder_layers} decoder layers, hidden {hidden}, {mels} mel bands, "
    "vocabulary {vocab}",
    base="model.",
    anchors=("@encoder.layers.{i}.self_attn.q_proj.weight", "@encoder.layers.{i}.self_attn_layer_norm.weight"),
    source="transformers 4.57, models/whisper/modeling_whisper.py",
    stated=("whisper",),
    rows=(
        Row("@encoder.conv1.weight", ("hidden", "mels", 3)),
        Row("@encoder.conv1.bias", ("hidden",)),
        Row("@encoder.conv2.weight", ("hidden", "hidden", 3)),
        Row("@encoder.conv2.bias", ("hidden",)),
        Row("@encoder.embed_positions.weight", ("audio_positions", "hidden")),
        Repeat("i", "layers", layer("@encoder.layers.{i}", "mlp", cross=False)),
        *norm("@encoder.layer_norm", "hidden"),
        Optional(
            "decoder",
            (
                Row("@decoder.embed_tokens.weight", ("vocab", "hidden")),
                Row("@decoder.embed_positions.weight", ("positions", "hidden")),
                Repeat("j", "decoder_layers", layer("@decoder.layers.{j}", "decoder_mlp", cross=True)),
                *norm("@decoder.layer_norm", "hidden"),
            ),
        ),
        Optional("proj_out", (Row("proj_out.weight", ("vocab", "hidden")),)),
        Optional("projector", linear("projector", "projection", "hidden")),
        Optional("classifier", linear("classifier", "num_classes", "projection")),
    ),
    assumes=(heads("attention heads of Whisper are 64 wide", "encoder_attention_heads"),),
)
