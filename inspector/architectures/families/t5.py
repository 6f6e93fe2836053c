"""T5 and T5 1.1, as transformers names them. The first block of each stack shows the number of heads."""

from __future__ import annotations

from inspector.architectures.families.entry import Family, Optional, Part, Repeat, Row, When
from inspector.architectures.families.inputs import two_sequences
from inspector.architectures.families.usual import epsilon


def attention(name: str) -> tuple[Part, ...]:
    """Self or cross attention, without biases."""
    return (
        Row(f"{name}.q.weight", ("heads*head_width", "hidden")),
        Row(f"{name}.k.weight", ("heads*head_width", "hidden")),
        Row(f"{name}.v.weight", ("heads*head_width", "hidden")),
        Row(f"{name}.o.weight", ("hidden", "heads*head_width")),
    )


def stack(name: str, index: str, count: str, *, cross: bool) -> tuple[Part, ...]:
    """The encoder or the decoder; the feed-forward part is the last layer of a block."""
    block = f"{name}.block.{{{index}}}"
    last = f"{block}.layer.{2 if cross else 1}"
    bias = Row(f"{block}.layer.0.SelfAttention.relative_attention_bias.weight", ("buckets", "heads"))
    crossing = (
        *attention(f"{block}.layer.1.EncDecAttention"),
        Row(f"{block}.layer.1.layer_norm.weight", ("hidden",)),
    )
    return (
        Optional(f"{name}_embedding", (Row(f"{name}.embed_tokens.weight", ("vocab", "hidden")),)),
        Repeat(
            index,
            count,
            (
                *attention(f"{block}.layer.0.SelfAttention"),
                When(f"{index} == 0", (bias,)),
                Row(f"{block}.layer.0.layer_norm.weight", ("hidden",)),
                *(crossing if cross else ()),
                Optional(
                    "gated",
                    (
                        Row(f"{last}.DenseReluDense.wi_0.weight", ("mlp", "hidden")),
                        Row(f"{last}.DenseReluDense.wi_1.weight", ("mlp", "hidden")),
                    ),
                ),
                When("not gated", (Row(f"{last}.DenseReluDense.wi.weight", ("mlp", "hidden")),)),
                Row(f"{last}.DenseReluDense.wo.weight", ("hidden", "mlp")),
                Row(f"{last}.layer_norm.weight", ("hidden",)),
            ),
        ),
        Row(f"{name}.final_layer_norm.weight", ("hidden",)),
    )


FAMILY = Family(
    library="transformers",
    name="t5",
    title="a T5",
    summary="{layers} encoder layers, {decoder_layers} decoder layers, hidden {hidden}, {heads} heads of width "
    "{head_width}, feed-forward {mlp}, vocabulary {vocab}",
    anchors=("encoder.block.{i}.layer.0.SelfAttention.q.weight", "encoder.block.{i}.layer.1.DenseReluDense.wo.weight"),
    source="transformers 4.57, models/t5/modeling_t5.py",
    stated=("t5", "mt5", "umt5"),
    inputs=two_sequences,
    rows=(
        Row("shared.weight", ("vocab", "hidden")),
        *stack("encoder", "i", "layers", cross=False),
        Optional("decoder", stack("decoder", "j", "decoder_layers", cross=True)),
        Optional("lm_head", (Row("lm_head.weight", ("vocab", "hidden")),)),
    ),
    assumes=(epsilon(1e-6, "T5", "layer_norm_epsilon"),),
)
