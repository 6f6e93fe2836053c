"""GPT-NeoX and Pythia, as transformers names them. Query, key and value stand interleaved per head in one matrix."""

from inspector.architectures.families.entry import Family, Optional, Repeat, Row
from inspector.architectures.families.inputs import one_sequence
from inspector.architectures.families.rows import linear, norm
from inspector.architectures.families.usual import ROPE, activation, epsilon, heads, linear_if, rope_theta

LAYER = "@layers.{i}"

FAMILY = Family(
    library="transformers",
    name="gpt_neox",
    title="a GPT-NeoX decoder",
    summary="{layers} layers, hidden {hidden}, vocabulary {vocab}",
    base="gpt_neox.",
    anchors=("@layers.{i}.attention.query_key_value.weight", "@layers.{i}.mlp.dense_h_to_4h.weight"),
    source="transformers 4.57, models/gpt_neox/modeling_gpt_neox.py",
    stated=("gpt_neox",),
    inputs=one_sequence,
    rows=(
        Row("@embed_in.weight", ("vocab", "hidden")),
        Repeat(
            "i",
            "layers",
            (
                *norm(f"{LAYER}.input_layernorm", "hidden"),
                *norm(f"{LAYER}.post_attention_layernorm", "hidden"),
                Optional(
                    "mask",
                    (
                        Row(f"{LAYER}.attention.bias", (1, 1, "positions", "positions"), "bool", is_buffer=True),
                        Row(f"{LAYER}.attention.masked_bias", (), is_buffer=True),
                    ),
                ),
                Optional("frequencies", (Row(f"{LAYER}.attention.rotary_emb.inv_freq", ("rotary",), is_buffer=True),)),
                *linear_if(f"{LAYER}.attention.query_key_value", "3*hidden", "hidden", "attention_bias"),
                *linear_if(f"{LAYER}.attention.dense", "hidden", "hidden", "attention_bias"),
                *linear(f"{LAYER}.mlp.dense_h_to_4h", "mlp", "hidden"),
                *linear(f"{LAYER}.mlp.dense_4h_to_h", "hidden", "mlp"),
            ),
        ),
        *norm("@final_layer_norm", "hidden"),
        Optional("embed_out", (Row("embed_out.weight", ("vocab", "hidden")),)),
        # transformers 5 calls it as everybody else does.
        Optional("lm_head", (Row("lm_head.weight", ("vocab", "hidden")),)),
        Optional("score", (Row("score.weight", ("num_classes", "hidden")),)),
    ),
    assumes=(
        heads("attention heads of Pythia are 64 wide up to 1,024 channels", "num_attention_heads"),
        activation("gelu", "Pythia", "hidden_act"),
        epsilon(1e-5, "GPT-NeoX", "layer_norm_eps"),
        rope_theta(10000.0, "rotary positions of GPT-NeoX have base 10,000"),
        ROPE,
    ),
)
