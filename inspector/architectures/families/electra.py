"""ELECTRA, as transformers names it: BERT's encoder, with embeddings that may be narrower."""

from inspector.architectures.families.encoder_rows import embeddings, layers
from inspector.architectures.families.entry import Family, Optional, Row
from inspector.architectures.families.inputs import one_sequence
from inspector.architectures.families.rows import linear, norm
from inspector.architectures.families.usual import activation, epsilon, heads

FAMILY = Family(
    library="transformers",
    name="electra",
    title="an ELECTRA encoder",
    summary="{layers} layers, hidden {hidden}, vocabulary {vocab}",
    base="electra.",
    anchors=("@encoder.layer.{i}.attention.self.query.weight",),
    source="transformers 4.57, models/electra/modeling_electra.py",
    stated=("electra",),
    inputs=one_sequence,
    rows=(
        *embeddings("embedding"),
        Optional("projected", linear("@embeddings_project", "hidden", "embedding")),
        layers(),
        Optional(
            "discriminator",
            (
                *linear("discriminator_predictions.dense", "hidden", "hidden"),
                *linear("discriminator_predictions.dense_prediction", 1, "hidden"),
            ),
        ),
        Optional(
            "generator",
            (
                *norm("generator_predictions.LayerNorm", "embedding"),
                *linear("generator_predictions.dense", "embedding", "hidden"),
                Optional("decoder", (Row("generator_lm_head.weight", ("vocab", "embedding")),)),
                Row("generator_lm_head.bias", ("vocab",)),
            ),
        ),
        Optional(
            "classifier",
            (
                *linear("classifier.dense", "hidden", "hidden"),
                *linear("classifier.out_proj", "num_classes", "hidden"),
            ),
        ),
        Optional("token_classifier", linear("classifier", "num_classes", "hidden")),
        Optional("qa", linear("qa_outputs", "num_classes", "hidden")),
    ),
    assumes=(
        heads("attention heads of ELECTRA are 64 wide", "num_attention_heads"),
        activation("gelu", "ELECTRA", "hidden_act"),
        epsilon(1e-12, "ELECTRA", "layer_norm_eps"),
    ),
)
