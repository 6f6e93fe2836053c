"""Rows that BERT, ELECTRA and RoBERTa have in common, as transformers names them."""

from __future__ import annotations

from inspector.architectures.families.entry import Optional, Part, Repeat, Row, Size
from inspector.architectures.families.rows import linear, norm

LAYER = "@encoder.layer.{i}"


def embeddings(width: Size) -> tuple[Part, ...]:
    """Word, position and type embeddings; position numbers are a buffer in files of transformers before 4.31."""
    return (
        Optional("position_ids", (Row("@embeddings.position_ids", (1, "positions"), "int64", is_buffer=True),)),
        Row("@embeddings.word_embeddings.weight", ("vocab", width)),
        Row("@embeddings.position_embeddings.weight", ("positions", width)),
        Row("@embeddings.token_type_embeddings.weight", ("types", width)),
        *norm("@embeddings.LayerNorm", width),
    )


def layers() -> Part:
    """The encoder."""
    return Repeat(
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
    )


def pooler() -> Part:
    """The dense layer over the first token."""
    return Optional("pooler", linear("@pooler.dense", "hidden", "hidden"))
