"""Qwen3, as transformers names it: Llama with norms over each head's queries and keys, which show the heads."""

from inspector.architectures.families.decoder_rows import HALF_SPLIT, decoder
from inspector.architectures.families.entry import Family
from inspector.architectures.families.inputs import one_sequence
from inspector.architectures.families.usual import ROPE, activation, epsilon, rope_theta

FAMILY = Family(
    library="transformers",
    name="qwen3",
    title="a Qwen3 decoder",
    summary="{layers} layers, hidden {hidden}, {heads} heads of width {head_width}, {key_heads} of them for keys, "
    "feed-forward {mlp}, vocabulary {vocab}",
    base="model.",
    anchors=("@layers.{i}.self_attn.q_norm.weight", "@layers.{i}.mlp.gate_proj.weight"),
    source="transformers 4.57, models/qwen3/modeling_qwen3.py",
    stated=("qwen3",),
    inputs=one_sequence,
    builder="inspector.architectures.families.builders.transformers_models:build_qwen3",
    rows=decoder(head_norms=True, query="heads*head_width", key="key_heads*head_width"),
    notes=(HALF_SPLIT,),
    assumes=(
        rope_theta(1000000.0, "rotary positions of Qwen3 have base 1,000,000"),
        ROPE,
        epsilon(1e-6, "Qwen3", "rms_norm_eps"),
        activation("silu", "Qwen3", "hidden_act"),
    ),
)
