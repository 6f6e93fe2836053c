"""karpathy/nanoGPT: GPT-2's names with ordinary linear layers, (out, in); biases are a setting."""

from inspector.architectures.families.entry import Family, Optional, Repeat, Row
from inspector.architectures.families.usual import epsilon, heads, linear_if, norm_if

BLOCK = "@h.{i}"

FAMILY = Family(
    library="karpathy",
    name="nanogpt",
    title="a nanoGPT decoder",
    summary="{layers} layers, hidden {hidden}, vocabulary {vocab}, {positions} positions",
    base="transformer.",
    anchors=("@h.{i}.attn.c_attn.weight", "@h.{i}.mlp.c_fc.weight"),
    source="karpathy/nanoGPT, model.py",
    rows=(
        Row("@wte.weight", ("vocab", "hidden")),
        Row("@wpe.weight", ("positions", "hidden")),
        Repeat(
            "i",
            "layers",
            (
                *norm_if(f"{BLOCK}.ln_1", "hidden", "bias"),
                # Four dimensions: the causal mask, which is called bias too.
                Optional("mask", (Row(f"{BLOCK}.attn.bias", (1, 1, "positions", "positions"), is_buffer=True),)),
                *linear_if(f"{BLOCK}.attn.c_attn", "3*hidden", "hidden", "bias"),
                *linear_if(f"{BLOCK}.attn.c_proj", "hidden", "hidden", "bias"),
                *norm_if(f"{BLOCK}.ln_2", "hidden", "bias"),
                *linear_if(f"{BLOCK}.mlp.c_fc", "mlp", "hidden", "bias"),
                *linear_if(f"{BLOCK}.mlp.c_proj", "hidden", "mlp", "bias"),
            ),
        ),
        *norm_if("@ln_f", "hidden", "bias"),
        Optional("lm_head", (Row("lm_head.weight", ("vocab", "hidden")),)),
    ),
    assumes=(
        heads("attention heads of GPT-2's sizes are 64 wide", "n_head"),
        epsilon(1e-5, "nanoGPT"),
    ),
)
