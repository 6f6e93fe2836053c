"""Mixtral, as its files name it (transformers before 5, which stacks the experts in memory)."""

from inspector.architectures.families.decoder_rows import HALF_SPLIT, decoder
from inspector.architectures.families.entry import Family, Repeat, Row
from inspector.architectures.families.inputs import one_sequence
from inspector.architectures.families.usual import ROPE, epsilon, grouped_heads, rope_theta

EXPERT = "@layers.{i}.block_sparse_moe.experts.{e}"

FAMILY = Family(
    library="transformers",
    name="mixtral",
    title="a Mixtral decoder",
    summary="{layers} layers with {experts} experts each, hidden {hidden}, feed-forward {mlp}, vocabulary {vocab}",
    base="model.",
    anchors=("@layers.{i}.block_sparse_moe.experts.{e}.w1.weight",),
    source="transformers 4.57, models/mixtral/modeling_mixtral.py",
    stated=("mixtral",),
    inputs=one_sequence,
    rows=decoder(
        feed_forward=(
            Row("@layers.{i}.block_sparse_moe.gate.weight", ("experts", "hidden")),
            Repeat(
                "e",
                "experts",
                (
                    Row(f"{EXPERT}.w1.weight", ("mlp", "hidden")),
                    Row(f"{EXPERT}.w2.weight", ("hidden", "mlp")),
                    Row(f"{EXPERT}.w3.weight", ("mlp", "hidden")),
                ),
            ),
        )
    ),
    notes=(HALF_SPLIT,),
    assumes=(
        *grouped_heads("Mixtral"),
        rope_theta(1000000.0, "rotary positions of Mixtral have base 1,000,000"),
        ROPE,
        epsilon(1e-5, "Mixtral", "rms_norm_eps"),
    ),
)
