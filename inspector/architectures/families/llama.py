"""Llama and Mistral, as transformers names them; both have the same tensors."""

from inspector.architectures.families.decoder_rows import HALF_SPLIT, decoder
from inspector.architectures.families.entry import Family
from inspector.architectures.families.inputs import one_sequence
from inspector.architectures.families.usual import ROPE, activation, epsilon, grouped_heads, rope_theta

FAMILY = Family(
    library="transformers",
    name="llama",
    title="a Llama or Mistral decoder",
    summary="{layers} layers, hidden {hidden}, feed-forward {mlp}, vocabulary {vocab}",
    base="model.",
    anchors=("@layers.{i}.self_attn.q_proj.weight", "@layers.{i}.mlp.gate_proj.weight"),
    source="transformers 4.57, models/llama/modeling_llama.py",
    stated=("llama", "mistral"),
    inputs=one_sequence,
    builder="inspector.architectures.families.builders.transformers_models:build_llama",
    rows=decoder(attention_bias="attention_bias", output_bias="attention_bias"),
    notes=(HALF_SPLIT,),
    assumes=(
        *grouped_heads("Llama"),
        rope_theta(10000.0, "rotary positions of Llama 1 and 2 have base 10,000; later ones state another"),
        ROPE,
        epsilon(1e-5, "Llama 2", "rms_norm_eps"),
        activation("silu", "Llama", "hidden_act"),
    ),
)
