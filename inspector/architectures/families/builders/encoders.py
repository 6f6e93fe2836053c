"""transformers' RoBERTa and DistilBERT with what was solved from a file.

A class is chosen by the parts that the file has, so that its state dict is the file's, name by name.
"""

from __future__ import annotations

from typing import Any

from inspector.architectures.families.builders.tied import library, tie_output

Settings = dict[str, Any]


def build_roberta(settings: Settings) -> Any:
    """RobertaModel and the models with a head on it. Raises ValueError for names of older versions."""
    transformers = library("transformers")
    if settings["position_ids"]:
        raise ValueError("transformers' class no longer keeps position_ids, which this file has")
    if settings["mlm"] and settings["decoder"] != settings["decoder_bias"]:
        raise ValueError("of lm_head.decoder the file has a half, which no class has")
    config = transformers.RobertaConfig(
        vocab_size=settings["vocab"],
        hidden_size=settings["hidden"],
        num_hidden_layers=settings["layers"],
        num_attention_heads=settings["heads"],
        intermediate_size=settings["mlp"],
        max_position_embeddings=settings["positions"],
        type_vocab_size=settings["types"],
        hidden_act=settings["activation"],
        layer_norm_eps=settings["epsilon"],
        num_labels=settings.get("num_classes") or 2,
    )
    if settings["mlm"]:
        model = transformers.RobertaForMaskedLM(config)
        if not settings["decoder"]:
            tie_output(model.lm_head, "decoder", model.roberta.embeddings.word_embeddings, model.lm_head)
        return model
    if settings["classifier"]:
        return transformers.RobertaForSequenceClassification(config)
    if settings["token_classifier"]:
        name = "RobertaForMultipleChoice" if settings["pooler"] else "RobertaForTokenClassification"
        return getattr(transformers, name)(config)
    if settings["qa"]:
        return transformers.RobertaForQuestionAnswering(config)
    return transformers.RobertaModel(config, add_pooling_layer=bool(settings["pooler"]))


def build_distilbert(settings: Settings) -> Any:
    """DistilBertModel and the models with a head on it. Raises ValueError for a masked model without its decoder."""
    transformers = library("transformers")
    config = transformers.DistilBertConfig(
        vocab_size=settings["vocab"],
        dim=settings["hidden"],
        n_layers=settings["layers"],
        n_heads=settings["heads"],
        hidden_dim=settings["mlp"],
        max_position_embeddings=settings["positions"],
        activation=settings["activation"],
        num_labels=settings.get("num_classes") or 2,
    )
    if settings["mlm"]:
        if not settings["decoder"]:
            raise ValueError("transformers' class has vocab_projector.weight, which this file leaves out as it is tied")
        return transformers.DistilBertForMaskedLM(config)
    if settings["pre_classifier"]:
        return transformers.DistilBertForSequenceClassification(config)
    if settings["classifier"]:
        return transformers.DistilBertForTokenClassification(config)
    if settings["qa"]:
        return transformers.DistilBertForQuestionAnswering(config)
    return transformers.DistilBertModel(config)
