"""RoBERTa and XLM-R, as transformers names them: BERT's encoder, with positions that begin behind the padding's."""

from inspector.architectures.families.encoder_rows import embeddings, layers, pooler
from inspector.architectures.families.entry import Family, Optional, Row
from inspector.architectures.families.inputs import tokens
from inspector.architectures.families.rows import linear, norm
from inspector.architectures.families.usual import activation, epsilon, heads

FAMILY = Family(
    library="transformers",
    name="roberta",
    title="a RoBERTa encoder",
    summary="{layers} layers, hidden {hidden}, vocabulary {vocab}",
    base="roberta.",
    anchors=("@encoder.layer.{i}.attention.self.query.weight",),
    source="transformers 4.57, models/roberta/modeling_roberta.py",
    stated=("roberta", "xlm-roberta", "camembert"),
    inputs=lambda settings: (tokens(settings, first=2),),
    builder="inspector.architectures.families.builders.encoders:build_roberta",
    rows=(
        *embeddings("hidden"),
        layers(),
        pooler(),
        Optional(
            "mlm",
            (
                Row("lm_head.bias", ("vocab",)),
                *linear("lm_head.dense", "hidden", "hidden"),
                *norm("lm_head.layer_norm", "hidden"),
                Optional("decoder", (Row("lm_head.decoder.weight", ("vocab", "hidden")),)),
                Optional("decoder_bias", (Row("lm_head.decoder.bias", ("vocab",)),)),
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
        heads("attention heads of RoBERTa are 64 wide", "num_attention_heads"),
        activation("gelu", "RoBERTa", "hidden_act"),
        epsilon(1e-5, "RoBERTa", "layer_norm_eps"),
    ),
)
