"""BERT, as transformers names it (modeling_bert.py): BertModel and the models with a head on it."""

from inspector.architectures.families.entry import Assume, Family, Optional, Repeat, Row
from inspector.architectures.families.rows import linear, norm

LAYER = "@encoder.layer.{i}"

FAMILY = Family(
    library="transformers",
    name="bert",
    title="BERT",
    summary="{layers} layers of width {hidden}, {vocab} tokens",
    base="bert.",
    anchors=("@encoder.layer.{i}.attention.self.query.weight", "@embeddings.token_type_embeddings.weight"),
    source="transformers 4.56, models/bert/modeling_bert.py",
    stated=("bert",),
    rows=(
        Optional("position_ids", (Row("@embeddings.position_ids", (1, "positions"), "int64", is_buffer=True),)),
        Row("@embeddings.word_embeddings.weight", ("vocab", "hidden")),
        Row("@embeddings.position_embeddings.weight", ("positions", "hidden")),
        Row("@embeddings.token_type_embeddings.weight", ("types", "hidden")),
        *norm("@embeddings.LayerNorm", "hidden"),
        Repeat(
            "i",
            "layers",
            (
                *linear(f"{LAYER}.attention.self.query", "hidden", "hidden"),
                *linear(f"{LAYER}.attention.self.key", "hidden", "hidden"),
                *linear(f"{LAYER}.attention.self.value", "hidden", "hidden"),
                *linear(f"{LAYER}.attention.output.dense", "hidden", "hidden"),
                *norm(f"{LAYER}.attention.output.LayerNorm", "hidden"),
                *linear(f"{LAYER}.intermediate.dense", "mlp", "hidden"),
                *linear(f"{LAYER}.output.dense", "hidden", "mlp"),
                *norm(f"{LAYER}.output.LayerNorm", "hidden"),
            ),
        ),
        Optional("pooler", linear("@pooler.dense", "hidden", "hidden")),
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
        Assume(
            "heads",
            lambda s: max(1, int(str(s.get("hidden", 64))) // 64),
            "attention heads of BERT are 64 wide",
            stated=("num_attention_heads",),
            fits=lambda s, value: isinstance(value, int) and int(str(s.get("hidden", 0))) % value == 0,
        ),
        Assume("activation", "gelu", "BERT uses GELU", stated=("hidden_act",)),
        Assume("epsilon", 1e-12, "BERT's layer norms add 1e-12", stated=("layer_norm_eps",)),
    ),
)
