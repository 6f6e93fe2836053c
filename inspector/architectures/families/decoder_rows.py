"""Rows of Llama and its kin (Mistral, Qwen), as transformers names them."""

from __future__ import annotations

from inspector.architectures.families.entry import Optional, Part, Repeat, Row, Size
from inspector.architectures.families.usual import linear_if

LAYER = "@layers.{i}"

# What the names say about rotary positions, which no shape does.
HALF_SPLIT = (
    "q_proj and k_proj are transformers' names: rotary positions pair each channel with the one half a head further on"
)
INTERLEAVED = "wq and wk are Meta's names: rotary positions pair neighbouring channels"


def decoder(
    *,
    attention_bias: str = "",
    output_bias: str = "",
    head_norms: bool = False,
    query: Size = "query_width",
    key: Size = "key_width",
    feed_forward: tuple[Part, ...] | None = None,
) -> tuple[Part, ...]:
    """The whole model. attention_bias, output_bias: flags; "" for layers that never have one.

    head_norms: with norms over each head's queries and keys. feed_forward: in place of the gated layers.
    """

    def projection(name: str, out: Size, inner: Size, flag: str) -> tuple[Part, ...]:
        return linear_if(name, out, inner, flag) if flag else (Row(f"{name}.weight", (out, inner)),)

    norms = (
        Row(f"{LAYER}.self_attn.q_norm.weight", ("head_width",)),
        Row(f"{LAYER}.self_attn.k_norm.weight", ("head_width",)),
    )
    gated = (
        *linear_if(f"{LAYER}.mlp.gate_proj", "mlp", "hidden", "mlp_bias"),
        *linear_if(f"{LAYER}.mlp.up_proj", "mlp", "hidden", "mlp_bias"),
        *linear_if(f"{LAYER}.mlp.down_proj", "hidden", "mlp", "mlp_bias"),
    )
    return (
        Row("@embed_tokens.weight", ("vocab", "hidden")),
        Repeat(
            "i",
            "layers",
            (
                *projection(f"{LAYER}.self_attn.q_proj", query, "hidden", attention_bias),
                *projection(f"{LAYER}.self_attn.k_proj", key, "hidden", attention_bias),
                *projection(f"{LAYER}.self_attn.v_proj", key, "hidden", attention_bias),
                *projection(f"{LAYER}.self_attn.o_proj", "hidden", query, output_bias),
                *(norms if head_norms else ()),
                # A buffer in files of transformers before 4.38.
                Optional("frequencies", (Row(f"{LAYER}.self_attn.rotary_emb.inv_freq", ("rotary",), is_buffer=True),)),
                *(gated if feed_forward is None else feed_forward),
                Row(f"{LAYER}.input_layernorm.weight", ("hidden",)),
                Row(f"{LAYER}.post_attention_layernorm.weight", ("hidden",)),
            ),
        ),
        Row("@norm.weight", ("hidden",)),
        Optional("lm_head", (Row("lm_head.weight", ("vocab", "hidden")),)),
        Optional("score", (Row("score.weight", ("num_classes", "hidden")),)),
    )
