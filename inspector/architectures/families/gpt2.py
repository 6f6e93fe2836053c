"""GPT-2, as transformers names it. Its Conv1D stores matrices as (in, out)."""

from inspector.architectures.families.entry import Family, Optional, Repeat, Row
from inspector.architectures.families.inputs import one_sequence
from inspector.architectures.families.rows import linear, norm
from inspector.architectures.families.usual import activation, epsilon, heads

BLOCK = "@h.{i}"

FAMILY = Family(
    library="transformers",
    name="gpt2",
    title="a GPT-2 decoder",
    summary="{layers} layers, hidden {hidden}, vocabulary {vocab}, {positions} positions",
    base="transformer.",
    anchors=("@h.{i}.attn.c_attn.weight", "@h.{i}.mlp.c_fc.weight"),
    source="transformers 4.57, models/gpt2/modeling_gpt2.py",
    stated=("gpt2",),
    inputs=one_sequence,
    builder="inspector.architectures.families.builders.transformers_models:build_gpt2",
    rows=(
        Row("@wte.weight", ("vocab", "hidden")),
        Row("@wpe.weight", ("positions", "hidden")),
        Repeat(
            "i",
            "layers",
            (
                *norm(f"{BLOCK}.ln_1", "hidden"),
                # The causal mask, a buffer called bias, in files of transformers before 4.28.
                Optional(
                    "mask", (Row(f"{BLOCK}.attn.bias", (1, 1, "positions", "positions"), "bool", is_buffer=True),)
                ),
                Optional("masked_bias", (Row(f"{BLOCK}.attn.masked_bias", (), is_buffer=True),)),
                Row(f"{BLOCK}.attn.c_attn.weight", ("hidden", "3*hidden")),
                Row(f"{BLOCK}.attn.c_attn.bias", ("3*hidden",)),
                Row(f"{BLOCK}.attn.c_proj.weight", ("hidden", "hidden")),
                Row(f"{BLOCK}.attn.c_proj.bias", ("hidden",)),
                *norm(f"{BLOCK}.ln_2", "hidden"),
                Row(f"{BLOCK}.mlp.c_fc.weight", ("hidden", "mlp")),
                Row(f"{BLOCK}.mlp.c_fc.bias", ("mlp",)),
                Row(f"{BLOCK}.mlp.c_proj.weight", ("mlp", "hidden")),
                Row(f"{BLOCK}.mlp.c_proj.bias", ("hidden",)),
            ),
        ),
        *norm("@ln_f", "hidden"),
        Optional("lm_head", (Row("lm_head.weight", ("vocab", "hidden")),)),
        Optional("summary", linear("multiple_choice_head.summary", "num_classes", "hidden")),
        Optional("score", (Row("score.weight", ("num_classes", "hidden")),)),
        Optional("classifier", linear("classifier", "num_classes", "hidden")),
    ),
    assumes=(
        heads("attention heads of GPT-2 are 64 wide", "n_head", "num_attention_heads"),
        activation("gelu_new", "GPT-2", "activation_function"),
        epsilon(1e-5, "GPT-2", "layer_norm_epsilon"),
    ),
)
