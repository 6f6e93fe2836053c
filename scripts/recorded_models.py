"""Which models of transformers and diffusers are recorded for the tests: (label, class, configuration) per family.

Published sizes, and small ones whose symbols are all different numbers, so that no two can be mistaken.
"""

from __future__ import annotations

from typing import Any

from torch import nn

Model = tuple[str, str, dict[str, Any]]

_BERT = {"hidden_size": 36, "num_attention_heads": 3, "intermediate_size": 52, "num_hidden_layers": 3}
_BERT |= {"vocab_size": 101, "max_position_embeddings": 41}
_LARGE = {"hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096, "num_hidden_layers": 24}
_DISTIL = {"dim": 36, "n_heads": 3, "hidden_dim": 52, "n_layers": 3, "vocab_size": 101, "max_position_embeddings": 41}
_ROBERTA = {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1}
_GPT2 = {"n_embd": 36, "n_head": 3, "n_layer": 3, "n_inner": 52, "vocab_size": 101, "n_positions": 41}
_LLAMA = {"hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 2, "intermediate_size": 52}
_LLAMA |= {"num_hidden_layers": 3, "vocab_size": 101, "head_dim": 8}
_T5 = {"d_model": 36, "d_kv": 10, "num_heads": 3, "d_ff": 52, "num_layers": 3, "vocab_size": 101}
_T5 |= {"relative_attention_num_buckets": 17}


def _heads(prefix: str, config: dict[str, Any], *tasks: str) -> list[Model]:
    return [(f"{prefix.removesuffix('For').lower()} small {task}", f"{prefix}{task}", config) for task in tasks]


MODELS: dict[str, list[Model]] = {
    "bert": [
        ("bert-base masked", "BertForMaskedLM", {}),
        ("bert-base classes", "BertForSequenceClassification", {"num_labels": 2}),
        ("bert-large model", "BertModel", _LARGE),
        ("bert-multilingual pretraining", "BertForPreTraining", {"vocab_size": 119547}),
        *_heads("BertFor", {**_BERT, "num_labels": 5, "type_vocab_size": 3}, "MaskedLM", "PreTraining"),
        *_heads("BertFor", {**_BERT, "num_labels": 5}, "SequenceClassification", "TokenClassification"),
        *_heads("BertFor", {**_BERT, "num_labels": 2}, "QuestionAnswering", "NextSentencePrediction"),
        *_heads("BertFor", _BERT, "MultipleChoice"),
        ("bert small", "BertModel", _BERT),
        ("bert small without pooler", "BertModel", {**_BERT, "add_pooling_layer": False}),
        ("bert small untied", "BertForMaskedLM", {**_BERT, "tie_word_embeddings": False}),
    ],
    "distilbert": [
        ("distilbert-base masked", "DistilBertForMaskedLM", {}),
        ("distilbert-base classes", "DistilBertForSequenceClassification", {"num_labels": 2}),
        *_heads("DistilBertFor", {**_DISTIL, "num_labels": 5}, "SequenceClassification", "TokenClassification"),
        *_heads("DistilBertFor", _DISTIL, "MaskedLM", "QuestionAnswering", "MultipleChoice"),
        ("distilbert small", "DistilBertModel", _DISTIL),
    ],
    "electra": [
        (
            "electra-small discriminator",
            "ElectraForPreTraining",
            {"embedding_size": 128, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024},
        ),
        ("electra-base", "ElectraModel", {"embedding_size": 768, "hidden_size": 768, "num_attention_heads": 12}),
        *_heads("ElectraFor", {**_BERT, "embedding_size": 20, "num_labels": 5}, "SequenceClassification"),
        *_heads("ElectraFor", {**_BERT, "embedding_size": 20, "num_labels": 5}, "TokenClassification"),
        *_heads("ElectraFor", {**_BERT, "embedding_size": 20}, "MaskedLM", "PreTraining", "QuestionAnswering"),
        ("electra small same width", "ElectraModel", {**_BERT, "embedding_size": 36}),
    ],
    "roberta": [
        ("roberta-base masked", "RobertaForMaskedLM", _ROBERTA),
        ("roberta-large classes", "RobertaForSequenceClassification", {**_ROBERTA, **_LARGE, "num_labels": 3}),
        ("xlm-roberta-base", "XLMRobertaForMaskedLM", {**_ROBERTA, "vocab_size": 250002}),
        *_heads("RobertaFor", {**_BERT, "num_labels": 5}, "SequenceClassification", "TokenClassification"),
        *_heads("RobertaFor", _BERT, "MaskedLM", "QuestionAnswering", "MultipleChoice"),
        ("roberta small", "RobertaModel", _BERT),
        ("roberta small without pooler", "RobertaModel", {**_BERT, "add_pooling_layer": False}),
    ],
    "gpt2": [
        ("gpt2", "GPT2LMHeadModel", {}),
        ("gpt2-medium", "GPT2Model", {"n_embd": 1024, "n_head": 16, "n_layer": 24}),
        ("gpt2-xl", "GPT2LMHeadModel", {"n_embd": 1600, "n_head": 25, "n_layer": 48}),
        ("gpt2 small", "GPT2Model", _GPT2),
        ("gpt2 small lm", "GPT2LMHeadModel", _GPT2),
        ("gpt2 small double", "GPT2DoubleHeadsModel", {**_GPT2, "num_labels": 1}),
        ("gpt2 small classes", "GPT2ForSequenceClassification", {**_GPT2, "num_labels": 5}),
        ("gpt2 small tokens", "GPT2ForTokenClassification", {**_GPT2, "num_labels": 5}),
    ],
    "gpt_neox": [
        (
            "pythia-70m",
            "GPTNeoXForCausalLM",
            {
                "hidden_size": 512,
                "num_attention_heads": 8,
                "num_hidden_layers": 6,
                "intermediate_size": 2048,
                "vocab_size": 50304,
            },
        ),
        ("gpt-neox-20b", "GPTNeoXForCausalLM", {}),
        ("neox small", "GPTNeoXModel", _BERT),
        ("neox small lm", "GPTNeoXForCausalLM", _BERT),
        ("neox small no bias", "GPTNeoXForCausalLM", {**_BERT, "attention_bias": False}),
        ("neox small classes", "GPTNeoXForSequenceClassification", {**_BERT, "num_labels": 5}),
    ],
    "llama": [
        ("llama-2-7b", "LlamaForCausalLM", {}),
        (
            "llama-3-8b",
            "LlamaForCausalLM",
            {"vocab_size": 128256, "num_key_value_heads": 8, "intermediate_size": 14336},
        ),
        (
            "llama-3.2-1b",
            "LlamaForCausalLM",
            {
                "vocab_size": 128256,
                "hidden_size": 2048,
                "num_hidden_layers": 16,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "intermediate_size": 8192,
                "tie_word_embeddings": True,
                "head_dim": 64,
            },
        ),
        (
            "mistral-7b",
            "MistralForCausalLM",
            {"vocab_size": 32000, "num_key_value_heads": 8, "intermediate_size": 14336},
        ),
        (
            "mistral-nemo",
            "MistralForCausalLM",
            {
                "vocab_size": 131072,
                "hidden_size": 5120,
                "num_hidden_layers": 40,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "intermediate_size": 14336,
                "head_dim": 128,
            },
        ),
        (
            "qwen2-0.5b",
            "Qwen2ForCausalLM",
            {
                "vocab_size": 151936,
                "hidden_size": 896,
                "num_hidden_layers": 24,
                "num_attention_heads": 14,
                "num_key_value_heads": 2,
                "intermediate_size": 4864,
                "tie_word_embeddings": True,
            },
        ),
        (
            "qwen3-0.6b",
            "Qwen3ForCausalLM",
            {
                "vocab_size": 151936,
                "hidden_size": 1024,
                "num_hidden_layers": 28,
                "num_attention_heads": 16,
                "num_key_value_heads": 8,
                "intermediate_size": 3072,
                "head_dim": 128,
                "tie_word_embeddings": True,
            },
        ),
        ("llama small", "LlamaModel", _LLAMA),
        ("llama small lm", "LlamaForCausalLM", _LLAMA),
        ("llama small tied", "LlamaForCausalLM", {**_LLAMA, "tie_word_embeddings": True}),
        ("llama small biases", "LlamaForCausalLM", {**_LLAMA, "attention_bias": True, "mlp_bias": True}),
        ("llama small classes", "LlamaForSequenceClassification", {**_LLAMA, "num_labels": 5}),
        ("qwen2 small", "Qwen2ForCausalLM", {k: v for k, v in _LLAMA.items() if k != "head_dim"}),
        ("qwen3 small", "Qwen3ForCausalLM", {**_LLAMA, "head_dim": 12}),
        ("qwen3 small model", "Qwen3Model", {**_LLAMA, "head_dim": 12}),
        ("mistral small", "MistralForCausalLM", {**_LLAMA, "head_dim": 12}),
    ],
    "t5": [
        ("t5-small", "T5ForConditionalGeneration", {}),
        (
            "t5-v1_1-base",
            "T5ForConditionalGeneration",
            {
                "d_model": 768,
                "d_ff": 2048,
                "num_layers": 12,
                "num_heads": 12,
                "feed_forward_proj": "gated-gelu",
                "tie_word_embeddings": False,
            },
        ),
        (
            "t5-v1_1-xxl encoder",
            "T5EncoderModel",
            {"d_model": 4096, "d_ff": 10240, "num_layers": 24, "num_heads": 64, "feed_forward_proj": "gated-gelu"},
        ),
        ("t5 small", "T5Model", {**_T5, "num_decoder_layers": 2}),
        ("t5 small lm", "T5ForConditionalGeneration", {**_T5, "num_decoder_layers": 2}),
        ("t5 small encoder", "T5EncoderModel", _T5),
        ("t5 small gated", "T5ForConditionalGeneration", {**_T5, "feed_forward_proj": "gated-gelu"}),
        (
            "t5 small gated untied",
            "T5ForConditionalGeneration",
            {**_T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
        ),
    ],
}


def build(class_name: str, config: dict[str, Any]) -> tuple[nn.Module, str]:
    """The model, on the device in force, and "LIBRARY-VERSION"."""
    import transformers

    found = getattr(transformers, class_name, None)
    if found is not None:
        config = dict(config)
        arguments = {key: config.pop(key) for key in ("add_pooling_layer",) if key in config}
        return found(found.config_class(**config), **arguments), f"transformers-{transformers.__version__}"
    import diffusers

    return getattr(diffusers, class_name)(**config), f"diffusers-{diffusers.__version__}"
