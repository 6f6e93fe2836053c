"""Qwen2 and 2.5, as transformers names them: Llama's layers with biases on query, key and value alone."""

from inspector.architectures.families.decoder_rows import HALF_SPLIT, decoder
from inspector.architectures.families.entry import Family
from inspector.architectures.families.inputs import one_sequence
from inspector.architectures.families.usual import ROPE, activation, epsilon, grouped_heads, rope_theta

FAMILY = Family(
    library="transformers",
    name="qwen2",
    title="a Qwen2 decoder",
    summary="{layers} layers, hidden {hidden}, feed-forward {mlp}, vocabulary {vocab}",
    base="model.",
    anchors=("@layers.{i}.self_attn.q_proj.bias", "@layers.{i}.mlp.gate_proj.weight"),
    source="transformers 4.57, models/qwen2/modeling_qwen2.py",
    stated=("qwen2",),
    inputs=one_sequence,
    builder="inspector.architectures.families.builders.transformers_models:build_qwen2",
    rows=decoder(attention_bias="attention_bias"),
    notes=(HALF_SPLIT,),
    assumes=(
        *grouped_heads("Qwen2"),
        rope_theta(1000000.0, "rotary positions of Qwen2 have base 1,000,000"),
        ROPE,
        epsilon(1e-6, "Qwen2", "rms_norm_eps"),
        activation("silu", "Qwen2", "hidden_act"),
    ),
)
