"""Llama in Meta's own names (consolidated.00.pth)."""

from inspector.architectures.families.decoder_rows import INTERLEAVED
from inspector.architectures.families.entry import Family, Optional, Repeat, Row
from inspector.architectures.families.usual import ROPE, epsilon, grouped_heads, rope_theta

LAYER = "layers.{i}"

FAMILY = Family(
    library="meta",
    name="llama",
    title="a Llama decoder in Meta's names",
    summary="{layers} layers, hidden {hidden}, feed-forward {mlp}, vocabulary {vocab}",
    anchors=("layers.{i}.attention.wq.weight", "layers.{i}.feed_forward.w1.weight"),
    source="facebookresearch/llama, llama/model.py",
    rows=(
        Row("tok_embeddings.weight", ("vocab", "hidden")),
        Repeat(
            "i",
            "layers",
            (
                Row(f"{LAYER}.attention.wq.weight", ("query_width", "hidden")),
                Row(f"{LAYER}.attention.wk.weight", ("key_width", "hidden")),
                Row(f"{LAYER}.attention.wv.weight", ("key_width", "hidden")),
                Row(f"{LAYER}.attention.wo.weight", ("hidden", "query_width")),
                Row(f"{LAYER}.feed_forward.w1.weight", ("mlp", "hidden")),
                Row(f"{LAYER}.feed_forward.w2.weight", ("hidden", "mlp")),
                Row(f"{LAYER}.feed_forward.w3.weight", ("mlp", "hidden")),
                Row(f"{LAYER}.attention_norm.weight", ("hidden",)),
                Row(f"{LAYER}.ffn_norm.weight", ("hidden",)),
            ),
        ),
        Row("norm.weight", ("hidden",)),
        Optional("output", (Row("output.weight", ("vocab", "hidden")),)),
        Optional("frequencies", (Row("rope.freqs", ("rotary",), is_buffer=True),)),
    ),
    notes=(INTERLEAVED,),
    assumes=(
        *grouped_heads("Llama"),
        rope_theta(10000.0, "rotary positions of Llama 1 and 2 have base 10,000; later ones state another"),
        ROPE,
        epsilon(1e-5, "Llama 2", "norm_eps"),
    ),
)
