"""Whisper in OpenAI's own names."""

from __future__ import annotations

from inspector.architectures.families.entry import Family, Part, Repeat, Row
from inspector.architectures.families.rows import linear, norm
from inspector.architectures.families.usual import heads


def attention(name: str) -> tuple[Part, ...]:
    """Query, key, value and output; the keys have no bias."""
    return (
        *linear(f"{name}.query", "hidden", "hidden"),
        Row(f"{name}.key.weight", ("hidden", "hidden")),
        *linear(f"{name}.value", "hidden", "hidden"),
        *linear(f"{name}.out", "hidden", "hidden"),
    )


def block(name: str, *, cross: bool) -> tuple[Part, ...]:
    """One layer of either side."""
    crossing = (*attention(f"{name}.cross_attn"), *norm(f"{name}.cross_attn_ln", "hidden"))
    return (
        *attention(f"{name}.attn"),
        *norm(f"{name}.attn_ln", "hidden"),
        *(crossing if cross else ()),
        *linear(f"{name}.mlp.0", "mlp", "hidden"),
        *linear(f"{name}.mlp.2", "hidden", "mlp"),
        *norm(f"{name}.mlp_ln", "hidden"),
    )


FAMILY = Family(
    library="openai",
    name="whisper",
    title="a Whisper in OpenAI's names",
    summary="{layers} encoder layers, {decoder_layers} decoder layers, hidden {hidden}, {mels} mel bands, "
    "vocabulary {vocab}",
    anchors=("encoder.blocks.{i}.attn.query.weight", "decoder.blocks.{j}.cross_attn.query.weight"),
    source="openai/whisper, whisper/model.py",
    rows=(
        Row("encoder.positional_embedding", ("audio_positions", "hidden"), is_buffer=True),
        Row("encoder.conv1.weight", ("hidden", "mels", 3)),
        Row("encoder.conv1.bias", ("hidden",)),
        Row("encoder.conv2.weight", ("hidden", "hidden", 3)),
        Row("encoder.conv2.bias", ("hidden",)),
        Repeat("i", "layers", block("encoder.blocks.{i}", cross=False)),
        *norm("encoder.ln_post", "hidden"),
        Row("decoder.positional_embedding", ("positions", "hidden")),
        Row("decoder.token_embedding.weight", ("vocab", "hidden")),
        Repeat("j", "decoder_layers", block("decoder.blocks.{j}", cross=True)),
        *norm("decoder.ln", "hidden"),
    ),
    assumes=(heads("attention heads of Whisper are 64 wide", "n_audio_head"),),
)
