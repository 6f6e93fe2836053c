"""DistilBERT, as transformers names it: half of BERT's layers, no token types, no pooler."""

from inspector.architectures.families.entry import Family, Optional, Repeat, Row
from inspector.architectures.families.inputs import one_sequence
from inspector.architectures.families.rows import linear, norm
from inspector.architectures.families.usual import activation, heads

LAYER = "@transformer.layer.{i}"

FAMILY = Family(
    library="transformers",
    name="distilbert",
    title="a DistilBERT encoder",
    summary="{layers} layers, hidden {hidden}, vocabulary {vocab}",
    base="distilbert.",
    anchors=("@transformer.layer.{i}.attention.q_lin.weight", "@transformer.layer.{i}.sa_layer_norm.weight"),
    source="transformers 4.57, models/distilbert/modeling_distilbert.py",
    stated=("distilbert",),
    inputs=one_sequence,
    builder="inspector.architectures.families.builders.encoders:build_distilbert",
    rows=(
        Row("@embeddings.word_embeddings.weight", ("vocab", "hidden")),
        Row("@embeddings.position_embeddings.weight", ("positions", "hidden")),
        *norm("@embeddings.LayerNorm", "hidden"),
        Repeat(
            "i",
            "layers",
            (
                *linear(f"{LAYER}.attention.q_lin", "hidden", "hidden"),
                *linear(f"{LAYER}.attention.k_lin", "hidden", "hidden"),
                *linear(f"{LAYER}.attention.v_lin", "hidden", "hidden"),
                *linear(f"{LAYER}.attention.out_lin", "hidden", "hidden"),
                *norm(f"{LAYER}.sa_layer_norm", "hidden"),
                *linear(f"{LAYER}.ffn.lin1", "mlp", "hidden"),
                *linear(f"{LAYER}.ffn.lin2", "hidden", "mlp"),
                *norm(f"{LAYER}.output_layer_norm", "hidden"),
            ),
        ),
        Optional(
            "mlm",
            (
                *linear("vocab_transform", "hidden", "hidden"),
                *norm("vocab_layer_norm", "hidden"),
                Optional("decoder", (Row("vocab_projector.weight", ("vocab", "hidden")),)),
                Row("vocab_projector.bias", ("vocab",)),
            ),
        ),
        Optional("pre_classifier", linear("pre_classifier", "hidden", "hidden")),
        Optional("classifier", linear("classifier", "num_classes", "hidden")),
        Optional("qa", linear("qa_outputs", "num_classes", "hidden")),
    ),
    assumes=(
        heads("attention heads of DistilBERT are 64 wide", "n_heads"),
        activation("gelu", "DistilBERT", "activation"),
    ),
)
