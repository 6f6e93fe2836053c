"""BERT, as transformers names it (modeling_bert.py): BertModel and the models with a head on it."""

from __future__ import annotations

from inspector.architectures.families.encoder_rows import embeddings, layers, pooler
from inspector.architectures.families.entry import Family, Optional, Row, Settings
from inspector.architectures.families.inputs import one_sequence
from inspector.architectures.families.rows import linear, norm
from inspector.architectures.families.usual import activation, epsilon, heads, whole


def form(settings: Settings) -> str:
    """The class whose names these are, and how many classes it tells apart."""
    classes = f" with {whole(settings, 'num_classes')} outputs" if settings.get("classifier") else ""
    return f"under the names of transformers' {class_of(settings)}{classes}"


def class_of(settings: Settings) -> str:
    """The class, as far as the heads show it."""
    if settings.get("mlm"):
        return "BertForPreTraining" if settings.get("nsp") else "BertForMaskedLM"
    if settings.get("nsp"):
        return "BertForNextSentencePrediction"
    if settings.get("qa"):
        return "BertForQuestionAnswering"
    if settings.get("classifier"):
        return "BertForSequenceClassification" if settings.get("pooler") else "BertForTokenClassification"
    return "BertModel"


FAMILY = Family(
    library="transformers",
    name="bert",
    title="a BERT encoder",
    summary="{layers} layers, hidden {hidden}, vocabulary {vocab}",
    base="bert.",
    anchors=("@encoder.layer.{i}.attention.self.query.weight",),
    source="transformers 4.57, models/bert/modeling_bert.py",
    stated=("bert",),
    inputs=one_sequence,
    builder="inspector.architectures.families.builders.transformers_models:build_bert",
    form=form,
    rows=(
        *embeddings("hidden"),
        layers(),
        pooler(),
        Optional(
            "mlm",
            (
                Row("cls.predictions.bias", ("vocab",)),
                *linear("cls.predictions.transform.dense", "hidden", "hidden"),
                *norm("cls.predictions.transform.LayerNorm", "hidden"),
                Optional("decoder", (Row("cls.predictions.decoder.weight", ("vocab", "hidden")),)),
                Optional("decoder_bias", (Row("cls.predictions.decoder.bias", ("vocab",)),)),
            ),
        ),
        Optional("nsp", linear("cls.seq_relationship", 2, "hidden")),
        Optional("classifier", linear("classifier", "num_classes", "hidden")),
        Optional("qa", linear("qa_outputs", "num_classes", "hidden")),
    ),
    assumes=(
        heads("attention heads of BERT are 64 wide", "num_attention_heads"),
        activation("gelu", "BERT", "hidden_act"),
        epsilon(1e-12, "BERT", "layer_norm_eps"),
    ),
)
